"""The networks that the lessons train."""

import tensorflow as tf


def small_convnet(image_shape: tuple[int, int, int], classes: int, seed: int) -> tf.keras.Model:
    """Return a network of two convolutions for images of shape (height, width, channels).

    Its output has the shape (batch, classes): logits, without softmax.
    """

    def initializer(offset: int) -> tf.keras.initializers.Initializer:
        return tf.keras.initializers.GlorotUniform(seed=seed + offset)

    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Input(image_shape),
            layers.Conv2D(
                32, 3, padding="same", activation="relu", kernel_initializer=initializer(0)
            ),
            layers.Conv2D(
                64, 3, padding="same", activation="relu", kernel_initializer=initializer(1)
            ),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(64, activation="relu", kernel_initializer=initializer(2)),
            layers.Dense(classes, kernel_initializer=initializer(3)),
        ]
    )


def wide_resnet(
    image_shape: tuple[int, int, int], classes: int, width: int = 2, blocks: int = 1
) -> tf.keras.Model:
    """Return a small wide residual network for images of shape (height, width, channels).

    Two groups of ``blocks`` residual blocks with ``16 * width`` and ``32 * width`` filters, the
    second one at half the resolution. A block adds two 3x3 convolutions to what comes in:

        y = x + conv(relu(conv(relu(x))))

    Wide residual networks (arXiv:1605.07146) normalise each batch. This one does not: its last
    convolution of a block starts at 0 instead, so that the block starts by changing nothing
    (arXiv:1901.09321). What batch normalisation does is a lesson of its own.

    The output has the shape (batch, classes): logits, without softmax.
    """
    layers = tf.keras.layers
    images = layers.Input(image_shape)
    x = layers.Conv2D(16, 3, padding="same", use_bias=False)(images)
    for filters, strides in ((16 * width, 1), (32 * width, 2)):
        for block in range(blocks):
            x = residual_block(x, filters, strides if block == 0 else 1)
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(x))
    return tf.keras.Model(images, layers.Dense(classes)(x), name="wide_resnet")


def residual_block(x: tf.Tensor, filters: int, strides: int) -> tf.Tensor:
    """Return ``x``, brought to the new shape where need be, plus two convolutions of it."""
    layers = tf.keras.layers
    active = layers.ReLU()(x)
    if x.shape[-1] != filters or strides != 1:
        x = layers.Conv2D(filters, 1, strides, padding="same", use_bias=False)(active)
    inner = layers.Conv2D(filters, 3, strides, padding="same")(active)
    inner = layers.ReLU()(inner)
    outer = layers.Conv2D(filters, 3, padding="same", kernel_initializer="zeros")(inner)
    return layers.Add()([x, outer])
