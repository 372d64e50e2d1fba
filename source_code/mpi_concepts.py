"""Statistics of handwritten digits: one process at first, any number of ranks after eight steps.

Run it:    horovodrun -np 2 python mpi_concepts.py
Check it:  hvdcourse check mpi_concepts

`report(name, value)` prints a value, and lets the check see it. Leave these lines where they are.
In a check every rank has digits of its own, so that no rank can do another rank's work.
"""

import argparse
import time
from pathlib import Path

# TODO: Step 1: Import Horovod for TensorFlow under the name hvd.
import numpy as np
import tensorflow as tf

from hvdcourse import report
from hvdcourse.data.sets import load_digits


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
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
    arguments = read_arguments()
    # So few numbers stay on the processor's cores, also where there are GPUs.
    tf.config.set_visible_devices([], "GPU")
    digits = load_digits()
    images = digits.train_images[: arguments.images].reshape(-1, 64).astype(np.float64)
    labels = digits.train_labels[: arguments.images]

    # TODO: Step 1: Start Horovod, and let every process know its rank, the number of ranks, and its
    # rank among the processes of its own machine.
    rank, size, local_rank = 0, 1, 0
    report("place", {"rank": rank, "size": size, "local_rank": local_rank})

    # TODO: Step 2: Share the images. `rows` is an array of the numbers of this rank's own images:
    # every image belongs to exactly one rank, and the shares differ by at most one image.
    rows = np.arange(len(images))
    report("rows", rows)

    direction = np.random.default_rng().normal(size=64)  # every process draws a different one
    report("drawn", direction)
    # TODO: Step 3: Let all ranks use the direction that rank 0 has drawn.
    report("direction", direction)

    # TODO: Step 4: Compute the mean image of ALL images on every rank, though each holds only its
    # own.
    mean = images[rows].mean(axis=0)
    report("mean", mean)

    scores = (images[rows] - mean) @ direction  # one number for each of this rank's images
    report("scores", scores)
    # TODO: Step 5: Give every rank the scores of all ranks, one after the other in the order of
    # ranks.
    all_scores = scores
    report("all_scores", all_scores)

    # TODO: Step 6: Regroup the images by digit: rank r gets the numbers of all images whose digit d
    # has d % size == r, from whichever rank held them, by a collective in this step. A rank knows
    # the digits of its own images alone. Alltoall cuts the vector that it is given into pieces, one
    # after the other: its splits, int32, say how long the piece for each rank is. It returns a
    # pair: the numbers that came, and how many came from each rank.
    regrouped = rows
    report("regrouped", regrouped)

    brightness = images[rows].sum(axis=0)  # of each of the 64 pixels, over this rank's images
    report("brightness", brightness)
    # TODO: Step 7: Add the brightness up over all ranks, but leave each rank only its own part:
    # rank 0 the first 64 / size pixels, rank 1 the next, and so on. Where 64 / size is not a whole
    # number, the first ranks have one pixel more.
    my_brightness = brightness
    report("my_brightness", my_brightness)

    # TODO: Step 8: Have one rank alone write the summary, and let no rank go on before it is
    # written.
    write_summary(arguments.summary, mean, arguments.write_seconds)
    report("summary", arguments.summary.read_text() if arguments.summary.exists() else "")


if __name__ == "__main__":
    main()
