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
