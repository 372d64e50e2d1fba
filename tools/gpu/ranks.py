"""Times training steps of ranks that see the same GPU, with their gradients averaged or not.

Horovod moves what is on a GPU with NCCL, which refuses two ranks on one GPU. An allreduce that is
put on the processor goes through Gloo.
"""

import argparse

import horovod.tensorflow as hvd
import tensorflow as tf
from precision import seconds_of_step, train_step_of

from hvdcourse.rank.reports import record
from hvdcourse.training.models import wide_resnet

DEVICES = {"gpu": "/gpu:0", "processor": "/cpu:0"}


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=1024, help="images a step, of all ranks")
    parser.add_argument("--exchange", choices=("none", *DEVICES), default="none")
    parser.add_argument("--turns", type=int, default=10, help="how often a step is timed")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    hvd.init()
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)  # leave the other ranks some

    def mean(gradients):
        if arguments.exchange == "none":
            return gradients
        with tf.device(DEVICES[arguments.exchange]):
            return hvd.grouped_allreduce(gradients)

    train_step = train_step_of(wide_resnet((32, 32, 3), 10, width=4, groups=3), mean)
    count = arguments.batch_size // hvd.size()
    batch = tf.random.uniform((count, 32, 32, 3)), tf.range(count) % 10
    seconds_of_step(train_step, batch)  # builds the graph
    record("seconds", [seconds_of_step(train_step, batch) for _ in range(arguments.turns)])


if __name__ == "__main__":
    main()
