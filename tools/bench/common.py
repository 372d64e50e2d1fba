"""What the forms of the benchmark have in common: their arguments, images and loss."""

import argparse

import numpy as np
import tensorflow as tf

from hvdcourse.data import load

CLASSES = 10


def read_arguments(description):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--data", help="a data set, or a folder of images; else random images")
    parser.add_argument("--images", type=int, default=4096, help="how many images an epoch has")
    parser.add_argument("--batch-size", type=int, default=256, help="images a step, on all ranks")
    parser.add_argument("--epochs", type=int, default=3, help="the first one is not measured")
    parser.add_argument("--bfloat16", action="store_true", help="compute in bfloat16")
    parser.add_argument("--no-allreduce", action="store_true", help="let ranks train on their own")
    parser.add_argument("--ports", help="where the workers of a MultiWorkerMirroredStrategy listen")
    arguments = parser.parse_args()
    if arguments.bfloat16:
        tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    return arguments


def read_images(arguments, dtype):
    """Return images of shape (count, 32, 32, 3) and labels of shape (count,)."""
    if arguments.data is None:
        random = np.random.default_rng(0)
        images = random.integers(0, 256, (arguments.images, 32, 32, 3), np.uint8)
        images = images if dtype == "uint8" else images.astype(dtype) / 255
        return images, random.integers(0, CLASSES, arguments.images)
    data = load(arguments.data, dtype=dtype)
    # A folder's images come ordered by class.
    chosen = np.random.default_rng(0).permutation(len(data.train_images))[: arguments.images]
    return data.train_images[chosen], data.train_labels[chosen]


def cross_entropy():
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
