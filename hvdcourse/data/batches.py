"""Batches that a generator makes, as Keras takes them."""

from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf


def dataset_of_batches(
    make_batches: Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]],
    images: np.ndarray | tf.TensorSpec,
    labels: np.ndarray | tf.TensorSpec,
) -> tf.data.Dataset:
    """Return batches of images and labels, made two ahead while another one is trained on.

    TensorFlow keeps ``make_batches``, and what that refers to, for as long as the process lives.

    Args:
        make_batches: returns a generator of pairs, images and their labels.
        images: all images, or something else of their shape (n, height, width, channels) and type.
        labels: all labels, or something else of their type.
    """
    signature = (
        tf.TensorSpec((None, *images.shape[1:]), images.dtype),
        tf.TensorSpec((None,), labels.dtype),
    )
    dataset = tf.data.Dataset.from_generator(make_batches, output_signature=signature).prefetch(2)
    return without_tuner(dataset)


def without_tuner(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return the dataset with nothing left to the tuner of tf.data.

    A program that drops an iterator waits for its tuner, which sleeps for up to as long as the
    iterator was in use. With a core a rank, 16 of 36 epochs of two ranks took a second longer.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
