"""What a training step computes and moves, and how much of both a device can do in a second."""

import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf

# How often a training step touches a weight, and a value between two layers: estimates.
TIMES_A_WEIGHT, TIMES_A_VALUE = 8, 5
BYTES_A_NUMBER = 4


def operations_per_image(model: tf.keras.Model) -> float:
    """Return the operations of a forward pass: 2 for each number of a kernel at each place."""
    layers = [layer for layer in model.layers if hasattr(layer, "kernel")]
    # A dense layer's kernel is used at one place.
    places = [np.prod(layer.output_shape[1:-1]) for layer in layers]
    kernels = [np.prod(layer.kernel.shape) for layer in layers]
    return float(2 * np.dot(kernels, places))


def work_of_step(model: tf.keras.Model, batch: int) -> tuple[float, float]:
    """Return the operations of a training step, and an estimate of the bytes that it moves.

    The backward pass does twice the operations of the forward pass: one product for the gradient
    of the weights, one for that of the input.
    """
    values = sum(np.prod(layer.output_shape[1:]) for layer in model.layers)
    numbers = TIMES_A_WEIGHT * model.count_params() + TIMES_A_VALUE * values * batch
    return 3 * operations_per_image(model) * batch, float(BYTES_A_NUMBER * numbers)


def measure_roofs(
    side: int, length: int, at_once: int = 1, repeats: int = 7
) -> tuple[float, float]:
    """Return the operations and the bytes that the device can do in a second.

    Args:
        at_once: products that are computed at the same time: the cores, where an operation has one.
        side: of the square matrices that are multiplied: 2 side^3 operations.
        length: of the vectors in ``v += w``: 12 length bytes, two numbers read and one written.
        repeats: how often both are measured; the fastest counts.
    """
    matrices = [tf.random.normal((side, side)) for _ in range(at_once)]
    products = tf.function(
        lambda: tf.stack([tf.matmul(matrix, matrix)[0, 0] for matrix in matrices])
    )
    v, w = tf.Variable(tf.zeros(length)), tf.ones(length)
    add = tf.function(lambda: v.assign_add(w)[0])
    operations = at_once * 2 * side**3 / fastest(lambda: products().numpy(), repeats)
    return operations, 3 * BYTES_A_NUMBER * length / fastest(lambda: add().numpy(), repeats)


def fastest(work: Callable[[], object], repeats: int) -> float:
    """Return the shortest time of several, in seconds, after one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)
