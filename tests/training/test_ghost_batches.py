"""Ghost batch normalization: each part by its own statistics, which the averages follow in turn."""

import numpy as np
import tensorflow as tf

from hvdcourse.training.models import GhostBatchNormalization, normalization

RNG = np.random.default_rng(0)
# Seven do not divide by three: parts of 2, 2 and 3 images, on other levels.
IMAGES = (RNG.random((7, 4, 4, 2)) + np.arange(7)[:, None, None, None]).astype(np.float32)
CUTS = [(0, 2), (2, 4), (4, 7)]
EPSILON = 1e-3


def test_each_part_is_normalized_by_itself_in_a_graph_too():
    layer = GhostBatchNormalization(3, momentum=0.5)
    graph = tf.function(lambda images: layer(images, training=True))
    found = graph(IMAGES).numpy()
    for begin, end in CUTS:
        part = IMAGES[begin:end]
        expected = (part - part.mean((0, 1, 2))) / np.sqrt(part.var((0, 1, 2)) + EPSILON)
        np.testing.assert_allclose(found[begin:end], expected, atol=1e-4)


def test_the_averages_move_once_for_each_part_and_normalize_what_is_not_trained_on():
    layer = GhostBatchNormalization(3, momentum=0.5)
    layer(IMAGES, training=True)
    mean = np.zeros(2)
    for begin, end in CUTS:
        mean = 0.5 * mean + 0.5 * IMAGES[begin:end].mean((0, 1, 2))
    np.testing.assert_allclose(layer.moving_mean, mean, rtol=1e-5)
    expected = (IMAGES - mean) / np.sqrt(layer.moving_variance.numpy() + EPSILON)
    np.testing.assert_allclose(layer(IMAGES), expected, atol=1e-4)


def test_a_network_with_the_layer_trains_and_is_made_again_from_its_settings():
    images = tf.keras.layers.Input((4, 4, 2))
    normalized = normalization("local", 0.5, ghost_batches=3)(images)
    output = tf.keras.layers.Dense(1)(tf.keras.layers.Flatten()(normalized))
    model = tf.keras.Model(images, output)
    again = tf.keras.models.clone_model(model)
    again.set_weights(model.get_weights())
    for one in (model, again):
        one.compile("sgd", "mse")
        one.fit(IMAGES, np.ones(7), batch_size=7, shuffle=False, verbose=0)
    for mine, other in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5)
    assert np.all(model.layers[1].moving_mean.numpy() > 1)
