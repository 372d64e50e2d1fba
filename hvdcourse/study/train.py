"""One run of a study: trains a network as a condition says, on this rank and its peers."""

from collections.abc import Callable, Iterator
from typing import Any

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

from hvdcourse.data.batches import dataset_of_batches
from hvdcourse.data.sets import NAMES, DataSet, images_as
from hvdcourse.data.shards import batches, shard, steps_per_epoch
from hvdcourse.study.callbacks import MeasureEpochs, SetRate, StopAtTarget, WatchLayers, finite
from hvdcourse.study.condition import Condition
from hvdcourse.study.networks import NoisyModel, network_for

# Small enough for a laptop's memory, large enough not to count.
TEST_BATCH = 512


def all_batches(
    data: DataSet, condition: Condition, seed: int, rank: int, size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield this rank's batches of all epochs, the next one made while one is trained on."""
    images, labels = data.train_images, data.train_labels
    for epoch in range(condition.epochs):
        for rows in batches(len(images), rank, size, condition.batch_size, seed=seed, epoch=epoch):
            yield images_as(images[rows], "float32"), labels[rows]


def part_of(data: DataSet, condition: Condition) -> DataSet:
    """Return the data that the condition trains and tests on.

    Raises:
        BadInput: there are not as many images as the condition asks for.
    """
    count = len(data.train_images)
    trained: slice | np.ndarray = slice(0, condition.images_of(count))
    tested: slice | np.ndarray = slice(count - condition.hold_out, count)
    if condition.data not in NAMES:
        # A folder's images come class by class: its last ones are all of one class.
        order = np.random.default_rng(0).permutation(count)
        trained, tested = order[trained], order[tested]
    held_out = condition.hold_out > 0
    return DataSet(
        data.train_images[trained],
        data.train_labels[trained],
        data.train_images[tested] if held_out else data.test_images,
        data.train_labels[tested] if held_out else data.test_labels,
        data.classes,
        data.source,
    )


def dataset_of(
    held: list[DataSet], condition: Condition, seed: int, rank: int, size: int
) -> tf.data.Dataset:
    """Return this rank's batches of all epochs, as Keras takes them.

    TensorFlow keeps the function that it is given here for as long as the process lives, and so
    what that refers to: empty ``held``, which holds the data, after the training.
    """
    images = tf.TensorSpec(held[0].train_images.shape, tf.float32)
    return dataset_of_batches(
        lambda: all_batches(held[0], condition, seed, rank, size), images, held[0].train_labels
    )


def tests_of(data: DataSet, rank: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return this rank's share of the test images, and their labels."""
    rows = shard(len(data.test_images), rank, size)
    return images_as(data.test_images[rows], "float32"), data.test_labels[rows]


def train(
    condition: Condition,
    seed: int,
    whole: DataSet,
    on_epoch: Callable[[dict[str, Any]], None],
) -> tuple[dict[str, Any], tf.keras.Model]:
    """Train once, and return what a record holds of it beside the settings, and the model.

    All ranks of the condition call this at the same time, after ``hvd.init()``; with a condition of
    one rank each process trains by itself.

    Args:
        condition: how to train.
        seed: of the first weights and of the order of the images.
        whole: the condition's data, all of it.
        on_epoch: called with each epoch's measurements.

    Raises:
        BadInput: there are not as many images as the condition asks for.
    """
    rank, size = (hvd.rank(), hvd.size()) if condition.ranks > 1 else (0, 1)
    data = part_of(whole, condition)
    model = network_for(condition, seed, data, size)
    steps = steps_per_epoch(len(data.train_images), size, condition.batch_size)
    rates = SetRate(lambda step: condition.rate_at(step, steps))
    tests = tests_of(data, rank, size)
    measure = MeasureEpochs(tests, len(data.train_images), size, TEST_BATCH, on_epoch)
    watched = condition.optimizer == "lamb" and condition.keep_trust_ratios
    layers = WatchLayers() if watched else None
    every = condition.evaluate_every or steps
    stop = None if condition.target is None else StopAtTarget(measure, condition.target, every)
    held = [data]
    model.fit(
        dataset_of(held, condition, seed, rank, size),
        epochs=condition.epochs,
        steps_per_epoch=steps,
        callbacks=list(filter(None, (rates, measure, layers, stop))),
        verbose=0,
    )
    held.clear()
    measured = {
        "steps": len(rates.rates),
        "learning_rates": rates.rates,
        "epochs": measure.epochs,
        "images_per_second": measure.images_per_second(),
    }
    if layers is not None:
        measured["trust_ratios"] = layers.trust_ratios
    if stop is not None:
        measured["steps_to_target"] = stop.reached_at
    if isinstance(model, NoisyModel):
        measured["noise"] = {k: list(map(finite, getattr(model, k))) for k in ("own", "mean")}
    return measured, model
