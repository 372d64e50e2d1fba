"""Time allreduces: of one tensor in several sizes, or of many tensors that are ready at once.

Run it:  horovodrun -np 2 python allreduce_times.py --bytes 1000,1000000
         horovodrun -np 2 python allreduce_times.py --bytes 64000 --tensors 60

This script is complete: it is an experiment of lesson 5, not an exercise.
"""

import argparse
import time

import horovod.tensorflow as hvd
import tensorflow as tf

from hvdcourse import report


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", default="1000000", help="sizes of a tensor, with commas between")
    parser.add_argument("--tensors", type=int, default=1, help="how many to average at once")
    parser.add_argument("--repeats", type=int, default=20, help="how often to time each size")
    parser.add_argument("--fp16", action="store_true", help="send two bytes a number, not four")
    return parser.parse_args()


def times_of(size, arguments):
    """Return the seconds of each repeat: `tensors` allreduces of `size` bytes, started at once."""
    numbers = [tf.ones([size // 4]) for _ in range(arguments.tensors)]
    compression = hvd.Compression.fp16 if arguments.fp16 else hvd.Compression.none

    # In a graph all of them start before the first one is waited for, as gradients do.
    @tf.function
    def average():
        return [
            hvd.allreduce(tensor, name=f"{size}_bytes_{place}", compression=compression)
            for place, tensor in enumerate(numbers)
        ]

    average()
    seconds = []
    for _ in range(arguments.repeats):
        hvd.allreduce(tf.zeros([]), name=f"meet_{size}")  # All ranks begin together.
        began = time.perf_counter()
        average()
        seconds.append(time.perf_counter() - began)
    return seconds


def main():
    arguments = read_arguments()
    hvd.init()
    for size in map(int, arguments.bytes.split(",")):
        seconds = times_of(size, arguments)
        if hvd.rank() == 0:
            times = [round(second, 6) for second in seconds]
            report("allreduce", {"bytes": size, "tensors": arguments.tensors, "seconds": times})
    # No rank ends while another one still needs it.
    hvd.allreduce(tf.zeros([]), name="end")


if __name__ == "__main__":
    main()
