"""Right: TensorFlow all the way, with collectives inside of tf.function, one made once for two."""

import argparse
import time
from pathlib import Path

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from hvdcourse import report
from hvdcourse.data.sets import load_digits


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=101, help="how many images to look at")
    parser.add_argument("--summary", type=Path, default=Path("summary.txt"), help="file to write")
    parser.add_argument("--write-seconds", type=float, default=0.0, help="a slow disk")
    return parser.parse_args()


def write_summary(path, mean, seconds):
    """Append a line to the summary; `seconds` stands for a disk that takes its time."""
    time.sleep(seconds)
    with path.open("a") as file:
        file.write(f"mean brightness {mean.mean():.4f}\n")


@tf.function
def total(values):
    return hvd.grouped_allreduce([values], op=hvd.Sum)[0]


def sum_of_part(values):
    each, longer = divmod(64, hvd.size())
    start = hvd.rank() * each + min(hvd.rank(), longer)
    return total(values)[start:][: each + (hvd.rank() < longer)]


def main():
    arguments = read_arguments()
    digits = load_digits()
    images = tf.reshape(digits.train_images[: arguments.images], (-1, 64))
    images = tf.cast(images, tf.float64)
    labels = digits.train_labels[: arguments.images]

    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    report("place", {"rank": rank, "size": size, "local_rank": hvd.local_rank()})

    rows = tf.range(len(labels) - 1 - rank, -1, -size)
    mine = tf.gather(images, rows)
    report("rows", rows)

    direction = tf.Variable(np.random.default_rng().normal(size=64))
    report("drawn", direction)
    hvd.broadcast_variables([direction], root_rank=0)
    report("direction", direction)

    mean = total(tf.reduce_sum(mine, axis=0)) / total(tf.cast(len(rows), tf.float64))
    report("mean", mean)

    scores = tf.linalg.matvec(mine - mean, direction)
    report("scores", scores)
    report("all_scores", tf.function(hvd.allgather)(scores))

    buckets = [[row for row in rows.numpy() if labels[row] % size == to] for to in range(size)]
    lengths = tf.constant([len(bucket) for bucket in buckets])
    flat = tf.constant([row for bucket in buckets for row in bucket])
    arrived, _ = hvd.alltoall(flat, splits=lengths, name="regroup")
    report("regrouped", arrived)

    brightness = tf.reduce_sum(mine, axis=0)
    report("brightness", brightness)
    report("my_brightness", sum_of_part(brightness))

    if not rank:
        write_summary(arguments.summary, mean.numpy(), arguments.write_seconds)
    hvd.broadcast(tf.zeros(1), root_rank=0, name="go_on")
    report("summary", arguments.summary.read_text())


if __name__ == "__main__":
    main()
