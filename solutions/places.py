"""Say where each process stands among the hosts, and time an allreduce between all of them.

Run it:  horovodrun -np 4 python places.py

This script is complete: it is an experiment of lesson 6, not an exercise.
"""

import argparse
import socket
import statistics
import time

import horovod.tensorflow as hvd
import tensorflow as tf

REPEATS = 5


def meet(name):
    """Wait until all ranks are here."""
    hvd.allreduce(tf.zeros([]), name=name)


def seconds_to_average(megabytes):
    """Return the median time of an allreduce of so many megabytes (10^6 bytes) of zeros."""
    vector = tf.zeros([megabytes * 250_000])
    hvd.allreduce(vector, name="warm up")
    taken = []
    for repeat in range(REPEATS):
        meet(f"before {repeat}")
        began = time.perf_counter()
        hvd.allreduce(vector, name=f"timed {repeat}")
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=0, help="to average; none without it")
    arguments = parser.parse_args()
    hvd.init()
    # On a machine with GPUs each rank has one of its own.
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    print(
        f"rank {hvd.rank()} of {hvd.size()} on {socket.gethostname()}: "
        f"local rank {hvd.local_rank()} of {hvd.local_size()}, "
        f"cross rank {hvd.cross_rank()} of {hvd.cross_size()}",
        flush=True,
    )
    if arguments.megabytes:
        seconds = seconds_to_average(arguments.megabytes)
        if hvd.rank() == 0:
            print(f"allreduce of {arguments.megabytes} MB: {seconds:.3f} s", flush=True)
    # No rank ends while another one still needs it.
    meet("end")


if __name__ == "__main__":
    main()
