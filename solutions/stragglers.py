"""Pretend to compute for a time that varies by chance, and wait for the slowest rank in each step.

Run it:  horovodrun -np 2 python stragglers.py

This script is complete: it is an experiment of lesson 5, not an exercise.
"""

import argparse
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from hvdcourse import record


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100, help="how many steps to make")
    parser.add_argument("--least-ms", type=float, default=10, help="what each step takes at least")
    parser.add_argument("--late-ms", type=float, default=5, help="what comes on top, on average")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    hvd.init()
    # On a machine with GPUs each rank has one of its own.
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    draw = np.random.default_rng(hvd.rank())
    computing, steps = [], []
    hvd.allreduce(tf.zeros([]), name="meet")  # All ranks begin together.
    for _ in range(arguments.steps):
        began = time.perf_counter()
        time.sleep((arguments.least_ms + draw.exponential(arguments.late_ms)) / 1000)
        computing.append(time.perf_counter() - began)
        hvd.allreduce(tf.zeros([]), name="gradient")
        steps.append(time.perf_counter() - began)
    record("computing", computing)
    record("steps", steps)
    if hvd.rank() == 0:
        print(f"{hvd.size()} ranks: a step takes {1000 * np.mean(steps):.1f} ms on average")


if __name__ == "__main__":
    main()
