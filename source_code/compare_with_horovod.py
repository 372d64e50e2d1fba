"""Average the same gradients with your distributed_optimizer.py and with Horovod, by the clock.

Run it:  horovodrun -np 2 --mpi python compare_with_horovod.py

This script is complete: it is an experiment of lesson 5, not an exercise.
"""

import argparse
import statistics
import time

import distributed_optimizer as yours
import horovod.tensorflow as hvd
import tensorflow as tf

from hvdcourse.training.layered import LayeredNetwork, random_samples

WIDTHS = [128] * 31  # 30 layers, each with a kernel of 64 KB and a bias


class Link:
    """The link that is there, with what `PretendedLink` has for your functions."""

    def __init__(self):
        # Horovod has begun MPI by now, and they share it.
        from mpi4py import MPI

        self.in_place, self.world = MPI.IN_PLACE, MPI.COMM_WORLD
        self.rank, self.size = self.world.rank, self.world.size

    def allreduce(self, buffer):
        self.world.Allreduce(self.in_place, buffer)

    def start(self, buffer):
        return self.world.Iallreduce(self.in_place, buffer)


def ways_to_average(gradients, link):
    """Return functions that average these pairs of a name and a gradient, by name."""
    sizes = {name: gradient.nbytes for name, gradient in reversed(gradients)}
    buckets = yours.make_buckets(sizes, limit=1_000_000)
    tensors = [(name, tf.constant(gradient)) for name, gradient in gradients]

    # In a graph all of them start before the first one is waited for.
    @tf.function
    def horovods():
        return [hvd.allreduce(tensor, name=name) for name, tensor in tensors]

    return {
        "yours, each": lambda: yours.average_each(iter(gradients), link),
        "yours, flat": lambda: yours.average_flat(iter(gradients), link),
        "yours, overlapped": lambda: yours.average_overlapped(
            iter(gradients), link, buckets, lambda number, buffer: buffer
        ),
        "Horovod": horovods,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=50, help="how often to time each way")
    arguments = parser.parse_args()
    hvd.init()
    # On a machine with GPUs each rank has one of its own.
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    link = Link()
    samples = random_samples(WIDTHS, 0, 0, [link.rank], 8)
    gradients = list(LayeredNetwork(WIDTHS, seed=0).backward(*samples))
    ways = ways_to_average(gradients, link)
    seconds = {way: [] for way in ways}
    for _ in range(arguments.repeats + 1):
        for way, average in ways.items():
            link.world.Barrier()  # All ranks begin together.
            began = time.perf_counter()
            average()
            seconds[way].append(time.perf_counter() - began)
    if link.rank == 0:
        print(f"{len(gradients)} gradients, {sum(g.nbytes for _, g in gradients) / 1e6:.1f} MB")
        for way, (_, *times) in seconds.items():  # the first time builds the graph
            middle = statistics.median(times)
            print(f"{way:18} {1e3 * middle:6.2f} ms  ({1e3 * min(times):.2f} at best)")


if __name__ == "__main__":
    main()
