"""Train nothing, but average forever; after 3 seconds rank 1 is killed, as by a lost machine.

Run it:  horovodrun -np 2 --gloo python lost_rank.py

This script is complete: it is an experiment of lesson 6, not an exercise.
"""

import os
import signal
import time

import horovod.tensorflow as hvd
import tensorflow as tf

SECONDS = 3.0


def main():
    hvd.init()
    # On a machine with GPUs each rank has one of its own.
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    began = time.time()
    step = 0
    while True:
        hvd.allreduce(tf.ones([1000]), name=f"step {step}")
        step += 1
        if hvd.rank() == 1 and time.time() - began > SECONDS:
            print(f"rank 1 is killed at {time.time():.2f}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
