"""How long the gradients of a transformer's blocks are, before it has taken a step."""

import numpy as np
import tensorflow as tf

from hvdcourse.study.sharpness import mean_loss


def gradient_norms(model: tf.keras.Model, images: np.ndarray, labels: np.ndarray) -> list[float]:
    """Return the length of the gradient of each block's last dense weights, first block first.

    As in figure 3 of arXiv:2002.04745, which compares the places of layer normalization.

    Args:
        model: of ``hvdcourse.training.models.transformer``.
        images: of shape (count, height, width, channels).
        labels: of shape (count,).
    """
    blocks = [layer for layer in model.layers if layer.name.startswith("dense_of_block_")]
    with tf.GradientTape() as tape:
        loss = mean_loss(model, images, labels)
    kernels = [block.layers[-1].kernel for block in blocks]
    return [float(tf.norm(gradient)) for gradient in tape.gradient(loss, kernels)]
