"""The length of each block's gradient, against the gradient of all weights."""

import numpy as np
import pytest
import tensorflow as tf

from hvdcourse.study.gradient_norms import gradient_norms
from hvdcourse.study.sharpness import mean_loss
from hvdcourse.training.models import transformer

IMAGES = np.random.default_rng(0).random((12, 4, 4, 1), np.float32)
LABELS = np.random.default_rng(1).integers(0, 3, 12)


def test_there_is_one_length_for_each_block_from_the_first_on():
    tf.keras.utils.set_random_seed(0)
    model = transformer((4, 4, 1), 3, width=8, blocks=3)
    with tf.GradientTape() as tape:
        loss = mean_loss(model, IMAGES, LABELS)
    gradients = tape.gradient(loss, model.trainable_variables)
    # The last dense weights of a block, 16 x 8, are the only ones of their shape.
    expected = [float(tf.norm(g)) for g in gradients if g.shape == (16, 8)]
    assert gradient_norms(model, IMAGES, LABELS) == pytest.approx(expected, rel=1e-5)
    assert len(set(expected)) == 3
