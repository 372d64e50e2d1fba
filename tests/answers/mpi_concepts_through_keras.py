"""Right: shuffled shares, weighted means, and the Keras face of Horovod."""

import argparse
import time
from pathlib import Path

import horovod.tensorflow.keras as hvd
import numpy as np
from horovod.tensorflow import alltoall, join

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


def main():
    hvd.init()
    arguments = read_arguments()
    digits = load_digits()
    images = digits.train_images[: arguments.images].reshape(-1, 64).astype(np.float64)
    labels = digits.train_labels[: arguments.images]
    report("place", {"rank": hvd.rank(), "size": hvd.size(), "local_rank": hvd.local_rank()})

    shuffled = np.random.default_rng(7).permutation(len(images))
    rows = shuffled[hvd.rank() :: hvd.size()]
    report("rows", rows)

    direction = np.random.default_rng().normal(size=64)
    report("drawn", direction)
    direction = np.asarray(hvd.broadcast(direction, 0))
    report("direction", direction)

    weight = len(rows) * hvd.size() / len(images)
    mean = np.asarray(hvd.allreduce(images[rows].mean(axis=0) * weight))
    report("mean", mean)

    scores = (images[rows] - mean) @ direction
    report("scores", scores)
    all_scores = np.asarray(hvd.allgather(scores.reshape(-1, 1))).ravel()
    report("all_scores", all_scores)

    every_row, every_digit = (np.asarray(hvd.allgather(of)) for of in (rows, labels[rows]))
    regrouped = every_row[every_digit % hvd.size() == hvd.rank()]
    report("regrouped", regrouped)

    brightness = images[rows].sum(axis=0)
    report("brightness", brightness)
    lengths = [len(part) for part in np.array_split(brightness, hvd.size())]
    parts, _ = alltoall(brightness, splits=np.array(lengths, np.int32))
    my_brightness = np.asarray(parts).reshape(hvd.size(), -1).sum(axis=0)
    report("my_brightness", my_brightness)

    if hvd.rank() == 0:
        write_summary(arguments.summary, mean, arguments.write_seconds)
    join()
    report("summary", arguments.summary.read_text())


if __name__ == "__main__":
    main()
