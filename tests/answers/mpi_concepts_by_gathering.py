"""Right: consecutive shares; everything by gathering what all ranks hold."""

import argparse
import time
from pathlib import Path

import horovod.tensorflow as horovod
import numpy as np

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
    given = read_arguments()
    horovod.init()
    me, everyone, here = horovod.rank(), horovod.size(), horovod.local_rank()
    digits = load_digits()
    images = digits.train_images[: given.images].reshape(-1, 64).astype(np.float64)
    labels = digits.train_labels[: given.images]
    report("place", {"size": everyone, "local_rank": here, "rank": me})

    my_numbers = np.array_split(np.arange(len(images)), everyone)[me]
    report("rows", list(my_numbers))

    drawn = np.random.default_rng().normal(size=64)
    report("drawn", drawn)
    direction = horovod.broadcast_object(drawn, root_rank=0)
    report("direction", direction)

    mean = horovod.allgather(images[my_numbers]).numpy().mean(axis=0)
    report("mean", mean)

    scores = (images[my_numbers] - mean) @ direction
    report("scores", scores)
    report("all_scores", np.concatenate(horovod.allgather_object(scores)))

    destinations = [(number, labels[number] % everyone) for number in my_numbers]
    gathered = [pair for part in horovod.allgather_object(destinations) for pair in part]
    report("regrouped", [number for number, destination in gathered if destination == me])

    brightness = images[my_numbers].sum(axis=0)
    report("brightness", brightness)
    per_rank = horovod.allgather(brightness[np.newaxis]).numpy()
    report("my_brightness", np.array_split(per_rank.sum(axis=0), everyone)[me])

    if me == 0:
        write_summary(given.summary, mean, given.write_seconds)
    horovod.allgather_object("written")
    report("summary", given.summary.read_text())


if __name__ == "__main__":
    main()
