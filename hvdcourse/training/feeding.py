"""Feeds the batches of an input pipeline to a device, and notes when everything happened.

A sample is a dict of tensors, and so is a batch. All times are in seconds since 1970, from the
same clock on both sides.
"""

import ctypes
import functools
import gc
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import islice
from typing import Any

import numpy as np
import psutil
import tensorflow as tf

from hvdcourse.rank.reports import record
from hvdcourse.training.fed_epoch import FedEpoch

Batch = dict[str, tf.Tensor]


def timed(name: str) -> Callable[[Callable[[Batch], Batch]], Callable[[Batch], Batch]]:
    """Let a function of a sample also note, under ``name``, when it began and when it ended."""

    def decorate(function: Callable[[Batch], Batch]) -> Callable[[Batch], Batch]:
        @functools.wraps(function)
        def call(sample: Batch) -> Batch:
            with tf.control_dependencies(list(sample.values())):
                began = tf.timestamp()
            with tf.control_dependencies([began]):
                result = function(sample)
            with tf.control_dependencies(list(result.values())):
                return {**result, name: tf.stack([began, tf.timestamp()])}

        return call

    return decorate


def feed(
    dataset: Iterable[Batch],
    epochs: int,
    step: Callable[[Batch], Any],
    *,
    most_steps: int | None = None,
    memory: bool = False,
) -> list[FedEpoch]:
    """Hand every batch of the dataset to ``step``, epoch after epoch, and return what happened.

    Args:
        dataset: batches, as dicts that hold an ``image`` among others; one pass is an epoch.
        epochs: how often to go through it.
        step: what the device does with a batch. It returns when the device is done.
        most_steps: end an epoch after so many steps, also where the dataset goes on.
        memory: also measure, which takes a moment, how much memory the process holds, how much
            it has written, and which pictures came.
    """
    fed = []
    for _ in range(epochs):
        fed.append(feed_epoch(dataset, step, most_steps, memory))
        if memory:
            fed[-1].resident_bytes = resident_bytes()
            fed[-1].written_bytes = psutil.Process().io_counters().write_chars
    return fed


def feed_epoch(
    dataset: Iterable[Batch], step: Callable[[Batch], Any], most_steps: int | None, pictures: bool
) -> FedEpoch:
    """Go through the dataset once; see ``feed``."""
    epoch = FedEpoch()
    asked = time.time()
    for batch in islice(dataset, most_steps):
        arrived = time.time()
        epoch.results.append(step(batch))
        ended = time.time()
        epoch.asked.append(asked)
        epoch.arrived.append(arrived)
        epoch.ended.append(ended)
        for name, values in batch.items():
            if name != "image":
                epoch.samples.setdefault(name, []).append(as_list(values))
        if pictures:
            epoch.pictures.append(told_apart(np.asarray(batch["image"])))
        asked = ended
    return epoch


def told_apart(images: np.ndarray) -> list[int]:
    """Return a number for each image, made of some of its pixels: moved, it has another one."""
    some = np.ascontiguousarray(images.reshape(len(images), -1)[:, ::257])
    return [zlib.crc32(pixels) for pixels in some]


def resident_bytes() -> int:
    """Return how much memory this process holds, after it gave back what it no longer uses."""
    gc.collect()
    c_library = ctypes.CDLL(None)
    if hasattr(c_library, "malloc_trim"):  # of glibc, which otherwise keeps freed memory
        c_library.malloc_trim(0)
    return psutil.Process().memory_info().rss


def as_list(values: Any) -> list[Any]:
    """Return a tensor as a list; texts as ``str``."""
    array = np.asarray(values)
    texts = array.dtype.kind in "OS"
    return [value.decode() for value in array] if texts else array.tolist()


def record_feeding(name: str, epochs: list[FedEpoch]) -> None:
    """Keep the epochs as this rank's finding, for a check."""
    record(name, [asdict(epoch) for epoch in epochs])
