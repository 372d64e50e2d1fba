r"""How sharp a minimum is: the largest curvature of the loss, and a slice through it.

The Hessian H of the loss has one row and one column for every weight, far too many to write down.
But H v, for a direction v, costs little more than two gradients:

    H v = ∂/∂w (g · v)          g: the gradient, v held constant

(Pearlmutter 1994, doi:10.1162/neco.1994.6.1.147). Power iteration, v ← H v / ‖H v‖, then turns any
v into the direction of the largest curvature, v · H v.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

Direction = list[tf.Tensor]


def mean_loss(model: tf.keras.Model, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Return the mean cross-entropy of a batch, in inference mode, with logits as the output."""
    logits = model(images, training=False)
    losses = tf.keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    return tf.reduce_mean(losses)


def hessian_times(
    model: tf.keras.Model, images: tf.Tensor, labels: tf.Tensor, direction: Direction
) -> Direction:
    """Return H v for one direction: a tensor for each trainable variable, of its shape."""
    variables = model.trainable_variables
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = mean_loss(model, images, labels)
        gradient = inner.gradient(loss, variables)
        along = sum(dot([g], [v]) for g, v in zip(gradient, direction, strict=True))
    # A variable that the gradient does not depend on has a curvature of 0.
    return outer.gradient(along, variables, unconnected_gradients="zero")


def largest_curvature(
    model: tf.keras.Model, images: np.ndarray, labels: np.ndarray, iterations: int = 30
) -> float:
    """Return the Hessian's largest eigenvalue by magnitude, by power iteration.

    Args:
        model: a network whose output are logits.
        images: float32 of shape (count, height, width, channels); all of them in one batch.
        labels: int64 of shape (count,).
        iterations: how often to multiply with the Hessian.
    """
    generator = np.random.default_rng(0)
    shapes = [variable.shape for variable in model.trainable_variables]
    direction = unit([tf.constant(generator.normal(size=shape), tf.float32) for shape in shapes])
    images, labels = tf.constant(images), tf.constant(labels)
    multiply = tf.function(lambda v: hessian_times(model, images, labels, v))
    for _ in range(iterations):
        product = multiply(direction)
        eigenvalue = dot(direction, product)
        direction = unit(product)
    return float(eigenvalue)


def dot(first: Sequence[tf.Tensor], second: Sequence[tf.Tensor]) -> tf.Tensor:
    """Return the inner product of two directions."""
    return tf.add_n([tf.reduce_sum(a * b) for a, b in zip(first, second, strict=True)])


def unit(direction: Direction) -> Direction:
    """Return the direction with length 1."""
    length = tf.sqrt(dot(direction, direction))
    return [part / length for part in direction]


def filter_normalized(model: tf.keras.Model, seed: int) -> list[np.ndarray]:
    """Return a random direction in which each filter is as long as the model's own filter.

    A network with ReLUs can have all weights of one layer doubled and those of the next one halved
    without any change, so that steps of one length mean different things to two networks; this
    undoes it (arXiv:1712.09913, section 4). A filter is what makes one output channel; biases and
    other vectors stand still.
    """
    generator = np.random.default_rng(seed)
    direction = []
    for variable in model.trainable_variables:
        weights = variable.numpy()
        if weights.ndim < 2:
            direction.append(np.zeros_like(weights))
            continue
        part = generator.normal(size=weights.shape).astype(np.float32)
        inner = tuple(range(weights.ndim - 1))
        lengths = np.sqrt((weights**2).sum(axis=inner) / (part**2).sum(axis=inner))
        direction.append(part * lengths)
    return direction


def loss_slice(
    model: tf.keras.Model,
    images: np.ndarray,
    labels: np.ndarray,
    distances: Sequence[float],
    seed: int = 0,
) -> list[float]:
    """Return the loss along one filter-normalized random direction, and leave the model as it was.

    Args:
        model: a network whose output are logits.
        images: float32 of shape (count, height, width, channels); all of them in one batch.
        labels: int64 of shape (count,).
        distances: how far to go, in parts of each filter's length; 0 is where the model is.
        seed: of the direction.
    """
    start = [variable.numpy() for variable in model.trainable_variables]
    direction = filter_normalized(model, seed)
    images, labels = tf.constant(images), tf.constant(labels)
    losses = []
    try:
        for distance in distances:
            for variable, at, along in zip(
                model.trainable_variables, start, direction, strict=True
            ):
                variable.assign(at + distance * along)
            losses.append(float(mean_loss(model, images, labels)))
    finally:
        for variable, at in zip(model.trainable_variables, start, strict=True):
            variable.assign(at)
    return losses
