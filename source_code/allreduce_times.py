"""Time allreduces: of one tensor in several sizes, or of many tensors that are ready at once.

Run it:  horovodrun -np 2 python allreduce_times.py --bytes 1000,1000000
         horovodrun -np 2 python allreduce_times.py --bytes 64000 --tensors 60

This script is complete: it is an experiment of lesson 5, not an exercise.
"""

import argparse
import itertools
import time
from functools import partial

import horovod.tensorflow as hvd
import tensorflow as tf

from hvdcourse import report
from hvdcourse.study.turns import in_turns


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", default="1000000", help="sizes of a tensor, with commas between")
    parser.add_argument("--tensors", type=int, default=1, help="how many to average at once")
    parser.add_argument("--repeats", type=int, default=20, help="how often to time each size")
    parser.add_argument("--compression", default="none", help="none, fp16, or none,fp16 in one run")
    return parser.parse_args()


def averaging(size, compression, tensors):
    """Return a function that starts `tensors` allreduces of `size` bytes at once."""
    numbers = [tf.ones([size // 4]) for _ in range(tensors)]

    # In a graph all of them start before the first one is waited for, as gradients do.
    @tf.function
    def average():
        return [
            hvd.allreduce(
                tensor,
                name=f"{compression}_{size}_{place}",
                compression=getattr(hvd.Compression, compression),
            )
            for place, tensor in enumerate(numbers)
        ]

    average()
    return average


def seconds_of(average):
    """Return how long the allreduces take. All ranks begin together."""
    hvd.allreduce(tf.zeros([]), name="meet")
    began = time.perf_counter()
    average()
    return time.perf_counter() - began


def main():
    arguments = read_arguments()
    hvd.init()
    # On a machine with GPUs each rank has one of its own.
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    sizes, compressions = map(int, arguments.bytes.split(",")), arguments.compression.split(",")
    cases = {
        case: partial(seconds_of, averaging(*case, arguments.tensors))
        for case in itertools.product(sizes, compressions)
    }
    for (size, compression), seconds in in_turns(cases, arguments.repeats).items():
        if hvd.rank() == 0:
            entry = {"bytes": size, "tensors": arguments.tensors, "compression": compression}
            report("allreduce", {**entry, "seconds": [round(second, 6) for second in seconds]})
    # No rank ends while another one still needs it.
    hvd.allreduce(tf.zeros([]), name="end")


if __name__ == "__main__":
    main()
