"""The transformer: what it sees of an image, and where its layer normalization stands."""

import numpy as np
import pytest
import tensorflow as tf

from hvdcourse.training.models import sines, transformer

IMAGES = np.random.default_rng(0).random((3, 6, 5, 2), np.float32)


@pytest.fixture(params=["post", "pre"])
def model(request):
    tf.keras.utils.set_random_seed(0)
    return transformer((6, 5, 2), 7, width=8, blocks=2, norm=request.param)


def test_every_image_gets_its_logits_from_itself_alone(model):
    together = model(IMAGES).numpy()
    assert together.shape == (3, 7)
    np.testing.assert_allclose(model(IMAGES[1:2]), together[1:2], rtol=1e-5, atol=1e-6)


def test_the_order_of_the_rows_matters(model):
    turned = model(IMAGES[:, ::-1]).numpy()
    assert not np.allclose(turned, model(IMAGES), rtol=1e-3)


def test_each_block_has_a_gradient_that_reaches_it(model):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(IMAGES) ** 2)
    lengths = [float(tf.norm(g)) for g in tape.gradient(loss, model.trainable_variables)]
    # The bias of the keys alone moves all scores of a query alike.
    zero = [v.name for v, one in zip(model.trainable_variables, lengths, strict=True) if one < 1e-6]
    assert all("key/bias" in name for name in zero)


def tokens_at_last_normalization(norm, end):
    """The tokens that come into (or leave) the last normalization if all blocks add zeros."""
    model = transformer((6, 5, 2), 7, width=8, blocks=2, norm=norm)
    for layer in model.layers:
        if "attention" in layer.name or "dense_of_block" in layer.name:
            layer.set_weights([np.zeros_like(weights) for weights in layer.get_weights()])
    last = [layer for layer in model.layers if "layer_normalization" in layer.name][-1]
    kernel, bias = model.layers[2].get_weights()
    embedded = IMAGES.reshape(3, 6, 10) @ kernel + bias + sines(6, 8)
    return tf.keras.Model(model.inputs, getattr(last, end))(IMAGES).numpy(), embedded


def test_pre_norm_has_a_way_from_the_first_layer_to_the_last_without_normalization():
    tokens, embedded = tokens_at_last_normalization("pre", "input")
    np.testing.assert_allclose(tokens, embedded, rtol=1e-5, atol=1e-5)


def test_post_norm_normalizes_the_sum_of_each_block():
    tokens, embedded = tokens_at_last_normalization("post", "input")
    np.testing.assert_allclose(tokens.std(axis=-1), 1, atol=0.05)
    assert abs(embedded.std(axis=-1).mean() - 1) > 0.1


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_what_the_output_is_made_of_is_normalized(norm):
    tokens, _ = tokens_at_last_normalization(norm, "output")
    np.testing.assert_allclose(tokens.mean(axis=-1), 0, atol=1e-5)


def test_places_differ_and_are_the_sines_of_the_paper():
    places = sines(8, 4)
    assert places.shape == (8, 4)
    np.testing.assert_allclose(places[0], [0, 1, 0, 1])
    np.testing.assert_allclose(places[3], [np.sin(3), np.cos(3), np.sin(0.03), np.cos(0.03)], 1e-6)
