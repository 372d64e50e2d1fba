"""Right: gradients are views of a buffer, and each bucket counts what it still waits for."""

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


class Buffer:
    """A flat vector, with a view of it for every gradient that it carries."""

    def __init__(self, gradients):
        total = sum(gradient.size for gradient in gradients.values())
        self.numbers, self.views = np.empty(total, np.float32), {}
        end = 0
        for name, gradient in gradients.items():
            start, end = end, end + gradient.size
            self.views[name] = self.numbers[start:end].reshape(gradient.shape)
            np.copyto(self.views[name], gradient)

    def average(self, link):
        link.allreduce(self.numbers)
        self.numbers *= np.float32(1 / link.size)
        return self.views


def average_each(backward, link):
    averaged = {}
    for name, gradient in backward:
        averaged |= Buffer({name: gradient}).average(link)
    return averaged


def average_flat(backward, link):
    return Buffer(dict(backward)).average(link)


def make_buckets(sizes, limit):
    """Fill the last bucket first, so that the first ones are the small ones."""
    buckets = [[]]
    for name, size in sizes.items():
        if buckets[0] and sum(sizes[other] for other in buckets[0]) + size > limit:
            buckets.insert(0, [])
        buckets[0].insert(0, name)
    return buckets


def average_in_buckets(backward, link, buckets):
    gradients, averaged = dict(backward), {}
    for bucket in buckets:
        averaged.update(Buffer({name: gradients[name] for name in bucket}).average(link))
    return averaged


def average_overlapped(backward, link, buckets, compress):
    bucket_of = {name: number for number, bucket in enumerate(buckets) for name in bucket}
    missing = [len(bucket) for bucket in buckets]
    gradients, sent = {}, []
    for name, gradient in backward:
        gradients[name] = gradient
        number = bucket_of[name]
        missing[number] -= 1
        if missing[number] == 0:
            buffer = Buffer({member: gradients[member] for member in buckets[number]})
            leaving = compress(number, buffer.numbers)
            sent.append((buffer, leaving, link.start(leaving)))
    # The last one first: all have come when it has.
    for buffer, leaving, message in reversed(sent):
        message.wait()
        np.divide(leaving, link.size, out=buffer.numbers, dtype=np.float32)
        gradients |= buffer.views
    return gradients


def uncompressed(number, buffer):
    record("compressed", number)
    return buffer


class ErrorFeedback:
    def __init__(self):
        self.owed = {}

    def compress(self, number, buffer):
        owed = self.owed.setdefault(number, np.zeros_like(buffer))
        owed += buffer
        leaving = owed.astype("float16")
        owed -= leaving
        return leaving


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
