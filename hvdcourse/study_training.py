"""One run of a study: trains a network as a condition says, on this rank and its peers."""

from collections.abc import Callable, Iterator
from typing import Any

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow import allreduce, broadcast_variables, grouped_allreduce

from hvdcourse.condition import Condition
from hvdcourse.data import NAMES, DataSet
from hvdcourse.models import convnet, normalisation, wide_resnet
from hvdcourse.optimizers import BIAS_AND_NORM, LAMB, NovoGrad
from hvdcourse.shards import batches, shard, steps_per_epoch
from hvdcourse.study_callbacks import MeasureEpochs, SetRate, StopAtTarget, WatchLayers, finite

# Small enough for a laptop's memory, large enough not to count.
TEST_BATCH = 512


class NoisyModel(tf.keras.Model):
    """A model that averages the gradients itself, and remembers their norms in every step.

    ``own`` and ``mean`` hold, for each step, the ranks' average of ‖g_b‖², and ‖g_B‖².
    """

    def remember(self) -> None:
        """Begin with no steps."""
        self.own: list[float] = []
        self.mean: list[float] = []

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Train on one batch (images, labels)."""
        images, labels = data
        with tf.GradientTape() as tape:
            logits = self(images, training=True)
            loss = self.compute_loss(images, labels, logits)
        variables = self.trainable_variables
        own = tape.gradient(loss, variables)
        mean = grouped_allreduce(own)
        norms = allreduce(tf.linalg.global_norm(own) ** 2), tf.linalg.global_norm(mean) ** 2
        tf.numpy_function(self.note, norms, [])
        self.optimizer.apply_gradients(zip(mean, variables, strict=True))
        return self.compute_metrics(images, labels, logits, None)

    def note(self, own: np.ndarray, mean: np.ndarray) -> None:
        """Remember one step's squared norms."""
        self.own.append(float(own))
        self.mean.append(float(mean))


def build_model(condition: Condition, image_shape: tuple[int, ...], classes: int) -> tf.keras.Model:
    """Return the condition's network, for images in 0…1 of shape (height, width, channels)."""
    kind = condition.batch_norm
    # One rank alone has nobody to average with, though other runs train beside it.
    kind = "local" if kind == "sync" and condition.ranks == 1 else kind
    normalise = normalisation(kind, condition.batch_norm_momentum)
    if condition.model == "convnet":
        model = convnet(image_shape, classes, condition.width, normalise)
    else:
        # Images of 32x32 pixels are halved first: a laptop trains on four times as many of them.
        strides = 2 if image_shape[0] >= 32 else 1
        model = wide_resnet(image_shape, classes, condition.width, 1, normalise, strides)
    return NoisyModel(model.inputs, model.outputs[0]) if condition.measure_noise else model


def build_optimizer(condition: Condition) -> tf.keras.optimizers.Optimizer:
    """Return the condition's optimizer, not yet distributed."""
    rate, decay = condition.full_rate, condition.weight_decay
    if condition.optimizer == "sgd":
        return tf.keras.optimizers.SGD(rate, momentum=0.9)
    kind = {"lamb": LAMB, "novograd": NovoGrad}[condition.optimizer]
    return kind(rate, weight_decay=decay, exclude_from_weight_decay=BIAS_AND_NORM)


def as_floats(images: np.ndarray) -> np.ndarray:
    """Return images as float32 in 0…1."""
    return images.astype(np.float32) / 255 if images.dtype == np.uint8 else images


def all_batches(
    data: DataSet, condition: Condition, seed: int, rank: int, size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield this rank's batches of all epochs, the next one made while one is trained on."""
    images, labels = data.train_images, data.train_labels
    for epoch in range(condition.epochs):
        for rows in batches(len(images), rank, size, condition.batch_size, seed=seed, epoch=epoch):
            yield as_floats(images[rows]), labels[rows]


def part_of(data: DataSet, condition: Condition) -> DataSet:
    """Return the data that the condition trains and tests on.

    Raises:
        BadInput: there are not as many images as the condition asks for.
    """
    count = len(data.train_images)
    trained, tested = slice(0, condition.images_of(count)), slice(count - condition.hold_out, count)
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


def compiled(condition: Condition, seed: int, data: DataSet, size: int) -> tf.keras.Model:
    """Return the condition's network, ready to train, and the same on all ranks."""
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(seed)
    model = build_model(condition, data.train_images.shape[1:], len(data.classes))
    optimizer = build_optimizer(condition)
    if isinstance(model, NoisyModel):
        model.remember()
    elif size > 1:
        optimizer = hvd.DistributedOptimizer(optimizer)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    optimizer.build(model.trainable_variables)
    if size > 1:
        broadcast_variables(model.variables, root_rank=0)
        broadcast_variables(optimizer.variables, root_rank=0)
    return model


def dataset_of(
    data: DataSet, condition: Condition, seed: int, rank: int, size: int
) -> tf.data.Dataset:
    """Return this rank's batches of all epochs, as Keras takes them."""
    signature = (
        tf.TensorSpec((None, *data.train_images.shape[1:]), tf.float32),
        tf.TensorSpec((None,), data.train_labels.dtype),
    )
    return tf.data.Dataset.from_generator(
        lambda: all_batches(data, condition, seed, rank, size), output_signature=signature
    ).prefetch(2)


def tests_of(data: DataSet, rank: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return this rank's share of the test images, and their labels."""
    mine = shard(len(data.test_images), rank, size)
    return as_floats(data.test_images[mine]), data.test_labels[mine]


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
    model = compiled(condition, seed, data, size)
    steps = steps_per_epoch(len(data.train_images), size, condition.batch_size)
    rates = SetRate(lambda step: condition.rate_at(step, steps))
    tests = tests_of(data, rank, size)
    measure = MeasureEpochs(tests, len(data.train_images), size, TEST_BATCH, on_epoch)
    layers = WatchLayers() if condition.optimizer == "lamb" else None
    every = condition.evaluate_every or steps
    stop = None if condition.target is None else StopAtTarget(measure, condition.target, every)
    model.fit(
        dataset_of(data, condition, seed, rank, size),
        epochs=condition.epochs,
        steps_per_epoch=steps,
        callbacks=[one for one in (rates, measure, layers, stop) if one is not None],
        verbose=0,
    )
    found = found_by(rates, measure, layers, stop)
    if isinstance(model, NoisyModel):
        found["noise"] = {"own": rounded(model.own), "mean": rounded(model.mean)}
    return found, model


def found_by(
    rates: SetRate,
    measure: MeasureEpochs,
    layers: WatchLayers | None,
    stop: StopAtTarget | None,
) -> dict[str, Any]:
    """Return what the callbacks of a run have found."""
    found = {
        "steps": len(rates.rates),
        "learning_rates": rates.rates,
        "epochs": measure.epochs,
        "images_per_second": measure.images_per_second(),
    }
    if layers is not None:
        found["trust_ratios"] = layers.trust_ratios
    if stop is not None:
        found["steps_to_target"] = stop.reached_at
    return found


def rounded(values: list[float]) -> list[float | None]:
    """Return values of six digits; None for one that is not finite, which JSON cannot hold."""
    return [finite(value) for value in values]
