"""Right: what leaves is divided before it leaves, and generators hand over buckets."""

import argparse
from dataclasses import asdict

import numpy as np

from hvdcourse import record
from hvdcourse.rank.pretended_link import PretendedLink
from hvdcourse.training.layered import LayeredNetwork, random_samples


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", default="96,256,256,256,192,10", help="of input and layers")
    parser.add_argument("--layer-ms", type=float, default=3, help="backward pass of one layer")
    parser.add_argument("--latency-us", type=float, default=50, help="from rank to rank")
    parser.add_argument("--mbit", type=float, default=1000, help="Mbit a second, rank to rank")
    parser.add_argument("--bucket-bytes", type=int, default=300_000, help="a bucket has at most")
    parser.add_argument("--samples", type=int, default=8, help="of each rank, a step")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.widths = [int(width) for width in arguments.widths.split(",")]
    return arguments


def joined(gradients):
    parts = [np.reshape(gradient, -1) for gradient in gradients]
    return np.hstack(parts) if parts else np.zeros(0, np.float32)


def split(buffer, like):
    """Return arrays in the shapes of others, made of the buffer's parts."""
    cuts = np.cumsum([array.size for array in like])[:-1]
    return [
        part.reshape(array.shape) for part, array in zip(np.split(buffer, cuts), like, strict=True)
    ]


def average_each(backward, link):
    messages = []
    for name, gradient in backward:
        share = np.ascontiguousarray(gradient) / np.float32(link.size)
        messages.append((name, share))
    for _, share in messages:
        link.allreduce(share)
    return dict(messages)


def average_flat(backward, link):
    return average_in_buckets(backward, link, [None])


def make_buckets(sizes, limit):
    def begin(names):
        if not names:
            return []
        count, full = 1, sizes[names[0]]
        while count < len(names) and full + sizes[names[count]] <= limit:
            full += sizes[names[count]]
            count += 1
        return [tuple(names[:count]), *begin(names[count:])]

    return begin(list(sizes)[::-1])


def average_in_buckets(backward, link, buckets):
    gradients = dict(backward)
    for bucket in buckets:
        names = bucket or tuple(gradients)
        own = [gradients[name] for name in names]
        share = joined(own) / np.float32(link.size)
        link.allreduce(share)
        gradients.update(zip(names, split(share, own), strict=True))
    return gradients


def complete(backward, buckets):
    """Yield each bucket's number with its gradients, as soon as they are all there."""
    backward = iter(backward)
    for number, bucket in enumerate(buckets):
        yield number, dict(next(backward) for _ in bucket)


def average_overlapped(backward, link, buckets, compress):
    on_the_way = []
    for number, gradients in complete(backward, buckets):
        buffer = compress(number, joined(gradients.values()))
        on_the_way.append((gradients, buffer, link.start(buffer)))
    averaged = {}
    while on_the_way:
        gradients, buffer, message = on_the_way.pop(0)
        message.wait()
        means = np.float32(buffer) / np.float32(link.size)
        averaged.update(zip(gradients, split(means, list(gradients.values())), strict=True))
    return averaged


def uncompressed(number, buffer):
    record("compressed", number)
    return buffer


class ErrorFeedback(dict):
    def compress(self, number, buffer):
        exact = buffer.astype(np.float64) + self.get(number, 0.0)
        rounded = exact.astype(np.half)
        self[number] = exact - rounded
        return rounded


def train(way, average, arguments, link):
    """Train with one way to average; return all weights, and the last step on the link."""
    record("way", way)
    network = LayeredNetwork(arguments.widths, arguments.seed, arguments.layer_ms / 1e3)
    for step in range(arguments.steps):
        samples = random_samples(
            arguments.widths, arguments.seed, step, [link.rank], arguments.samples
        )
        gradients = average(network.backward(*samples, link.compute), link)
        network.update(gradients, arguments.learning_rate)
        done = link.end_step()
    record("trained", {"weights": network.all_weights(), "step": asdict(done)})
    return network.all_weights(), done


def train_alone(arguments, ranks):
    """Return all weights after one process has trained on the samples of so many ranks."""
    network = LayeredNetwork(arguments.widths, arguments.seed)
    for step in range(arguments.steps):
        samples = random_samples(
            arguments.widths, arguments.seed, step, list(range(ranks)), arguments.samples
        )
        network.update(dict(network.backward(*samples)), arguments.learning_rate)
    return network.all_weights()


def main():
    arguments = read_arguments()
    sizes = LayeredNetwork(arguments.widths, arguments.seed).sizes
    buckets = make_buckets(sizes, arguments.bucket_bytes)
    record("buckets", buckets)
    feedback = ErrorFeedback()
    ways = {
        "each": average_each,
        "flat": average_flat,
        "buckets": lambda backward, link: average_in_buckets(backward, link, buckets),
        "overlapped": lambda backward, link: average_overlapped(
            backward, link, buckets, uncompressed
        ),
        "fp16": lambda backward, link: average_overlapped(
            backward, link, buckets, feedback.compress
        ),
    }
    link = PretendedLink(arguments.latency_us / 1e6, arguments.mbit * 1e6 / 8)
    alone = train_alone(arguments, link.size)
    if link.rank == 0:
        print("way          messages     MB  ms a step  exposed ms  weights off by")
    for number, (way, average) in enumerate(ways.items(), start=1):
        weights, done = train(way, average, arguments, link)
        if link.rank == 0:
            print(
                f"{number} {way:<10} {len(done.sent):8} {done.bytes / 1e6:6.2f} "
                f"{1e3 * done.seconds:10.2f} {1e3 * done.exposed:11.2f} "
                f"{np.abs(weights - alone).max():15.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
