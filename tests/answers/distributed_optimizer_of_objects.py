"""Right: an object hears of each gradient; blocking buckets leave within the backward pass."""

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


def mean(link, *gradients):
    """Average gradients in place, together."""
    buffer = np.concatenate([gradient.flatten() for gradient in gradients])
    link.start(buffer).wait()
    put_back(buffer, gradients, link.size)


def put_back(buffer, gradients, count):
    numbers = iter(np.split(buffer, np.cumsum([gradient.size for gradient in gradients])))
    for gradient in gradients:
        np.divide(next(numbers).reshape(gradient.shape), count, out=gradient, dtype=np.float32)


def average_each(backward, link):
    gradients = {}
    for name, gradients[name] in backward:
        mean(link, gradients[name])
    return gradients


def average_flat(backward, link):
    gradients = dict(backward)
    mean(link, *gradients.values())
    return gradients


def make_buckets(sizes, limit):
    order, buckets, full = sorted(sizes, key=list(sizes).index, reverse=True), [], limit + 1
    for name in order:
        full += sizes[name]
        if full > limit:
            buckets.append([])
            full = sizes[name]
        buckets[-1].append(name)
    return buckets


def average_in_buckets(backward, link, buckets):
    gradients, left = {}, [list(bucket) for bucket in buckets]
    for name, gradient in backward:
        gradients[name] = gradient
        if name == left[0][-1]:
            mean(link, *(gradients[member] for member in left.pop(0)))
    return gradients


class Overlapping:
    def __init__(self, link, buckets, compress):
        self.link, self.buckets, self.compress = link, buckets, compress
        self.gradients, self.full = {}, []

    def ready(self, name, gradient):
        self.gradients[name] = gradient
        bucket = self.buckets[len(self.full)]
        if all(member in self.gradients for member in bucket):
            members = [self.gradients[member] for member in bucket]
            buffer = self.compress(len(self.full), np.concatenate(list(map(np.ravel, members))))
            self.full.append((members, buffer, self.link.start(buffer)))

    def finish(self):
        for _, _, message in self.full:
            message.wait()
        for members, buffer, _ in self.full:
            put_back(buffer.astype(np.float32), members, self.link.size)
        return self.gradients


def average_overlapped(backward, link, buckets, compress):
    step = Overlapping(link, buckets, compress)
    for name, gradient in backward:
        step.ready(name, gradient)
    return step.finish()


def uncompressed(number, buffer):
    record("compressed", number)
    return buffer


class ErrorFeedback:
    def __init__(self):
        self.lost = []

    def compress(self, number, buffer):
        if number == len(self.lost):
            self.lost.append(np.zeros(len(buffer), np.float32))
        exact = np.add(buffer, self.lost[number])
        halves = np.float16(exact)
        np.subtract(exact, halves, out=self.lost[number], dtype=np.float32)
        return halves


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
