"""Feeds one GPU from image files in three ways, while nvidia-smi says how busy it is."""

import argparse
import subprocess
import tempfile
import time
from datetime import datetime
from itertools import pairwise

import tensorflow as tf
from precision import train_step_of

from hvdcourse.data.image_folder import find_images
from hvdcourse.rank.reports import record
from hvdcourse.training.models import wide_resnet

SIDE = 32
WATCH = (
    *("nvidia-smi", "--id=0", "--query-gpu=timestamp,utilization.gpu,memory.used"),
    *("--format=csv,noheader,nounits", "--loop-ms=200"),
)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="train/<class>/*.jpg, test/<class>/*.jpg")
    parser.add_argument("--batch-size", type=int, default=512, help="images a step")
    parser.add_argument("--seconds", type=float, default=10, help="to watch each way")
    return parser.parse_args()


def decode(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.ensure_shape(image, (SIDE, SIDE, 3)), label


def to_float(images, labels):
    return tf.cast(images, tf.float32) / 255, labels


def pipelines(folder, batch_size):
    """Return three ways to feed a device with batches of images and labels, without an end."""
    found = find_images(folder)
    paths = [str(path) for path in found.train_paths]
    files = tf.data.Dataset.from_tensor_slices((paths, found.train_labels))
    # TensorFlow would read several files at once by itself.
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    files = files.with_options(options)
    in_parallel = {"num_parallel_calls": tf.data.AUTOTUNE, "deterministic": False}

    def batches(images):
        return images.batch(batch_size, drop_remainder=True).map(to_float)

    shuffled = files.shuffle(len(paths)).repeat()
    kept = files.map(decode, **in_parallel).cache().shuffle(len(paths)).repeat()
    return {
        "one file after the other": batches(shuffled.map(decode)),
        "many files at once, the next batch ahead": batches(
            shuffled.map(decode, **in_parallel)
        ).prefetch(2),
        "each file decoded once, the next batch ahead": batches(kept).prefetch(2),
    }


def train(train_step, dataset, warm_up, seconds):
    """Train, and return when it began and ended, less the first seconds, and images a second."""
    counts, times = [], [time.perf_counter()]
    began = None
    for images, labels in dataset:
        train_step(images, labels).numpy()  # waits until the device is done
        times.append(time.perf_counter())
        if began is None and times[-1] - times[0] > warm_up:
            began, counts, times = datetime.now(), [], [times[-1]]
        elif began is not None:
            counts.append(len(images))
            if times[-1] - times[0] > seconds:
                break
    steps = [end - begin for begin, end in pairwise(times)]
    return {
        "began": began.timestamp(),
        "ended": datetime.now().timestamp(),
        "images_per_second": sum(counts) / sum(steps),
    }


def read_watch(lines):
    """Return nvidia-smi's rows as [seconds since 1970, percent busy, MiB used]."""
    rows = []
    for line in lines:
        moment, percent, megabytes = line.split(", ")
        moment = datetime.strptime(moment, "%Y/%m/%d %H:%M:%S.%f").timestamp()
        rows.append([moment, float(percent), float(megabytes)])
    return rows


def main():
    arguments = read_arguments()
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    train_step = train_step_of(wide_resnet((SIDE, SIDE, 3), 10, width=4, groups=3))
    ways = pipelines(arguments.data, arguments.batch_size)
    with tempfile.TemporaryFile("w+") as log:
        watch = subprocess.Popen(WATCH, stdout=log)
        try:
            found = {
                # Long enough to have decoded all files once.
                name: train(train_step, dataset, arguments.seconds / 2, arguments.seconds)
                for name, dataset in ways.items()
            }
        finally:
            watch.terminate()
            watch.wait()
        log.seek(0)
        rows = read_watch(log)
    for name, way in found.items():
        inside = [row for row in rows if way["began"] <= row[0] <= way["ended"]]
        way["watch"] = [[round(row[0] - way["began"], 2), *row[1:]] for row in inside]
        record(name, way)


if __name__ == "__main__":
    main()
