"""The networks of a study's runs: built and compiled once for all runs that compute alike."""

from dataclasses import asdict
from functools import partial

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow import allreduce, broadcast_variables, grouped_allreduce

from hvdcourse.data.sets import DataSet
from hvdcourse.study.condition import Condition
from hvdcourse.training.models import convnet, normalization, transformer, wide_resnet
from hvdcourse.training.optimizers import BIAS_AND_NORM, LAMB, NovoGrad

ImageShape = tuple[int, int, int]

# For photographs the paper's three groups, mean and centring: without them no large rate trains.
# The stem halves them first: a laptop trains on four times as many.
wide_resnet_of_photos = partial(
    wide_resnet, stem_strides=2, groups=3, average_places=True, center=True
)
# Settings that change nothing in TensorFlow's graph of a step, in which the rate is a variable.
NOT_IN_GRAPH = frozenset({"data", "images", "hold_out", "batch_size", "epochs"})
NOT_IN_GRAPH |= {"learning_rate", "scaling", "base_batch_size", "warmup_epochs", "schedule"}
NOT_IN_GRAPH |= {"target", "evaluate_every", "keep_trust_ratios", "keep_weights"}
# By network_key: the networks of this process, and their optimizers' variables as they were at
# first.
_BUILT: dict[tuple, tuple[tf.keras.Model, list[np.ndarray]]] = {}


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


def build_model(condition: Condition, image_shape: ImageShape, classes: int) -> tf.keras.Model:
    """Return the condition's network, for images in 0…1 of shape (height, width, channels)."""
    kind = condition.batch_norm
    # One rank alone has nobody to average with, though other runs train beside it.
    kind = "local" if kind == "sync" and condition.ranks == 1 else kind
    normalize = normalization(kind, condition.batch_norm_momentum, condition.ghost_batches)
    if condition.model == "convnet":
        model = convnet(image_shape, classes, condition.width, normalize)
    elif condition.model == "transformer":
        blocks, norm = condition.blocks, condition.layer_norm
        model = transformer(image_shape, classes, condition.width, blocks, norm)
    else:
        network = wide_resnet_of_photos if image_shape[0] >= 32 else wide_resnet
        model = network(image_shape, classes, condition.width, normalize)
    return NoisyModel(model.inputs, model.outputs[0]) if condition.measure_noise else model


def build_optimizer(condition: Condition) -> tf.keras.optimizers.Optimizer:
    """Return the condition's optimizer, not yet distributed."""
    rate, decay = condition.full_rate, condition.weight_decay
    if condition.optimizer == "sgd":
        return tf.keras.optimizers.SGD(rate, momentum=0.9)
    if condition.optimizer == "adam":
        return tf.keras.optimizers.Adam(rate)
    kind = {"lamb": LAMB, "novograd": NovoGrad}[condition.optimizer]
    return kind(rate, weight_decay=decay, exclude_from_weight_decay=BIAS_AND_NORM)


def compiled(
    condition: Condition, image_shape: ImageShape, classes: int
) -> tuple[tf.keras.Model, list[np.ndarray]]:
    """Return the condition's network, ready to train, and its optimizer's variables."""
    model, optimizer = build_model(condition, image_shape, classes), build_optimizer(condition)
    if condition.ranks > 1 and not condition.measure_noise:
        optimizer = hvd.DistributedOptimizer(optimizer)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    # Of a step that creates the variables of its metric TensorFlow would make two graphs.
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")
    model.compile(optimizer, loss, metrics=[accuracy])
    optimizer.build(model.trainable_variables)
    return model, [variable.numpy() for variable in optimizer.variables]


def network_key(condition: Condition, image_shape: ImageShape, classes: int) -> tuple:
    """Return what runs have in common that can share a network.

    That is every setting that is not known to change nothing: a new one is part of it.
    """
    settings = asdict(condition).items()
    graph = tuple((name, value) for name, value in settings if name not in NOT_IN_GRAPH)
    return graph, image_shape, classes


def network_for(condition: Condition, seed: int, data: DataSet, size: int) -> tf.keras.Model:
    """Return the condition's network as at the start of a run, and the same on all ranks.

    Runs that differ in their seed, their rate or their batch share a network, one after the other:
    to build the graph of a step takes longer than a short run's training.
    """
    height, width, channels = data.train_images.shape[1:]
    image_shape, classes = (height, width, channels), len(data.classes)
    key = network_key(condition, image_shape, classes)
    if key not in _BUILT:
        _BUILT[key] = compiled(condition, image_shape, classes)
    model, optimizer_at_start = _BUILT[key]
    tf.keras.utils.set_random_seed(seed)
    model.set_weights(build_model(condition, image_shape, classes).get_weights())
    optimizer = model.optimizer
    for variable, value in zip(optimizer.variables, optimizer_at_start, strict=True):
        variable.assign(value)
    if isinstance(model, NoisyModel):
        model.remember()
    if size > 1:
        broadcast_variables(model.variables, root_rank=0)
        broadcast_variables(optimizer.variables, root_rank=0)
    return model
