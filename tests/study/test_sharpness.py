"""The largest curvature against the whole Hessian, and a slice that leaves the model as it was."""

import numpy as np
import pytest
import tensorflow as tf

from hvdcourse.study.sharpness import filter_normalized, largest_curvature, loss_slice, mean_loss
from hvdcourse.training.models import convnet

IMAGES = np.random.default_rng(0).random((24, 4, 4, 1)).astype(np.float32)
LABELS = np.random.default_rng(1).integers(0, 3, 24)


def small_model():
    tf.keras.utils.set_random_seed(3)
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [layers.Input((4, 4, 1)), layers.Flatten(), layers.Dense(4, "tanh"), layers.Dense(3)]
    )


def whole_hessian(model):
    """Return the Hessian of the mean loss as an array (weights, weights)."""
    variables = model.trainable_variables
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            loss = mean_loss(model, IMAGES, LABELS)
        gradient = tf.concat([tf.reshape(g, [-1]) for g in inner.gradient(loss, variables)], 0)
    rows = outer.jacobian(gradient, variables)
    return np.concatenate([np.reshape(row, (len(gradient), -1)) for row in rows], axis=1)


def test_power_iteration_finds_the_largest_eigenvalue():
    model = small_model()
    eigenvalues = np.linalg.eigvalsh(whole_hessian(model))
    largest = eigenvalues[np.abs(eigenvalues).argmax()]
    found = largest_curvature(model, IMAGES, LABELS, iterations=100)
    assert found == pytest.approx(largest, rel=1e-3)


def test_a_slice_begins_at_the_solution_and_leaves_the_model_as_it_was():
    model = convnet((4, 4, 1), 3, width=1)
    before = model.get_weights()
    losses = loss_slice(model, IMAGES, LABELS, [0.0, 0.5, 0.0])
    assert losses[0] == losses[2] == pytest.approx(float(mean_loss(model, IMAGES, LABELS)))
    assert losses[1] != losses[0]
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_direction_is_as_long_as_the_weights_filter_by_filter():
    model = convnet((4, 4, 1), 3, width=1)
    for variable, part in zip(model.trainable_variables, filter_normalized(model, 0), strict=True):
        if part.ndim < 2:
            assert not part.any()
            continue
        inner = tuple(range(part.ndim - 1))
        np.testing.assert_allclose(
            (part**2).sum(axis=inner), (variable.numpy() ** 2).sum(axis=inner), rtol=1e-4
        )


def test_a_slice_is_the_same_for_a_network_that_computes_the_same():
    # With ReLU one layer's weights can be doubled and the next one's halved.
    model = convnet((4, 4, 1), 3, width=1)
    losses = loss_slice(model, IMAGES, LABELS, [-0.3, 0.3])
    weights = model.get_weights()
    model.set_weights([weights[0] * 2, weights[1] * 2, weights[2] / 2, *weights[3:]])
    np.testing.assert_allclose(loss_slice(model, IMAGES, LABELS, [-0.3, 0.3]), losses, rtol=1e-4)
