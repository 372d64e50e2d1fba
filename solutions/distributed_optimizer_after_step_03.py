"""The heart of Horovod, by hand: the gradients of all ranks are averaged, in five ways.

Run it:    horovodrun -np 4 --mpi python distributed_optimizer.py
Check it:  hvdcourse check distributed_optimizer

`link.allreduce(buffer)` replaces the numbers in a buffer by their sum over all ranks, and returns
nothing. `message = link.start(buffer)` only starts that; the sum is there after `message.wait()`.
`link.rank` and `link.size` are this rank's number and the number of ranks. The messages are real,
mpi4py's Iallreduce. Their seconds are those of a formula, for a link of the latency and bandwidth
below, and so are those of the layers: they are the same on every machine.

`record(name, value)` lets the check see a value. Leave these lines where they are.
"""

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


def average_each(backward, link):
    """Return all gradients by name, averaged; `backward` yields (name, gradient), last layer first.

    A gradient is a NumPy array of 32 bits. Each layer has two: its bias's, then its kernel's.
    """
    # Step 1: Every gradient becomes the mean over all ranks, in an allreduce of its own. The link
    # adds up, and does not divide.
    gradients = dict(backward)
    for gradient in gradients.values():
        link.allreduce(gradient)
        gradient /= link.size
    return gradients


def pack(gradients):
    """Return a new vector with the numbers of a list of gradients, one after the other."""
    # Step 2: The buffer is flat, and its numbers have the type that they have in the gradients.
    return np.concatenate([gradient.ravel() for gradient in gradients])


def unpack(buffer, gradients):
    """Put the numbers of a buffer back into these gradients, in place."""
    # Step 2: What `pack` put into the buffer goes back to where it came from.
    start = 0
    for gradient in gradients:
        # A slice and a new shape are views: the numbers are copied once.
        gradient[...] = buffer[start : start + gradient.size].reshape(gradient.shape)
        start += gradient.size


def average_flat(backward, link):
    """Return all gradients by name, averaged in one message."""
    # Step 2: All gradients travel in one buffer, so that the latency is paid once.
    gradients = dict(backward)
    buffer = pack(gradients.values())
    link.allreduce(buffer)
    unpack(buffer / link.size, gradients.values())
    return gradients


def make_buckets(sizes, limit):
    """Return lists of names: the gradients that travel together.

    `sizes` has the bytes of each gradient by name, in the order of the layers. A gradient larger
    than the limit, in bytes, has a bucket of its own.
    """
    # Step 3: The buckets, and the names in each, stand in the order in which the gradients become
    # ready. No bucket is empty or exceeds the limit, and there are as few as that allows.
    buckets, free = [], 0
    # The backward pass begins with what the forward pass ended with.
    for name in reversed(sizes):
        if sizes[name] > free:
            buckets.append([])
            free = limit
        buckets[-1].append(name)
        free -= sizes[name]
    return buckets


def average_in_buckets(backward, link, buckets):
    """Return all gradients by name, averaged in one message for each bucket."""
    # Step 3: Every bucket is a flat buffer, and travels in an allreduce of its own, when the
    # backward pass is over.
    gradients = dict(backward)
    for bucket in buckets:
        members = [gradients[name] for name in bucket]
        buffer = pack(members)
        link.allreduce(buffer)
        unpack(buffer / link.size, members)
    return gradients


def average_overlapped(backward, link, buckets, compress):
    """Return all gradients by name, averaged while the backward pass goes on.

    What leaves for a bucket is `compress(number, buffer)`, with the bucket's number from 0 on, and
    its sum is made 32 bits again, and divided, when it has come.
    """
    # TODO: Step 4: A bucket leaves as soon as its last gradient is ready, and the backward pass
    # goes on while it travels. Each message is waited for before its numbers are used.
    return dict(backward)


def uncompressed(number, buffer):
    """Return a bucket's buffer as it is."""
    record("compressed", number)
    return buffer


class ErrorFeedback:
    """Makes 16 bits of 32, and keeps what each bucket lost by it."""

    def __init__(self):
        self.lost = {}

    def compress(self, number, buffer):
        """Return what leaves in place of a bucket's buffer."""
        # TODO: Step 5: Numbers of 16 bits (NumPy's float16) leave. What rounding takes from a
        # bucket is kept, and added to the same bucket's gradients in the next step, before these
        # are rounded.
        return buffer


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
