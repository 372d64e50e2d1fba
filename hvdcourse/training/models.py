"""The networks that the lessons train."""

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
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
    image_shape: tuple[int, int, int],
    classes: int,
    width: int = 2,
    normalize: Callable[[tf.Tensor], tf.Tensor] = lambda x: x,
    stem_strides: int = 1,
    groups: int = 2,
    average_places: bool = False,
    center: bool = False,
) -> tf.keras.Model:
    """Return a small wide residual network for images of shape (height, width, channels).

    Groups of one residual block: ``16 * width`` filters in the first group, and in each further one
    twice as many at half the resolution. A block adds two 3x3 convolutions to what comes in:

        y = x + conv(relu(conv(relu(x))))

    Wide residual networks (arXiv:1605.07146) have three groups and normalize each batch. This one
    does not, unless ``normalize`` comes before each ReLU: its last convolution of a block starts at
    0 instead, so that the block starts by changing nothing (arXiv:1901.09321). And where they
    average over all places of the image before the last layer, this one keeps the places apart
    unless ``average_places``: small images have few of them, and it learns in fewer steps. With
    ``center``, images in 0…1 are first brought to a mean near 0 and a spread near 1, as theirs are.

    The output has the shape (batch, classes): logits, without softmax.
    """
    layers = tf.keras.layers
    images = layers.Input(image_shape)
    x = layers.Rescaling(4.0, -2.0)(images) if center else images
    x = convolution(16, strides=stem_strides)(x)
    for group in range(groups):
        x = residual_block(x, 16 * width * 2**group, 2 if group else 1, normalize)
    places = layers.GlobalAveragePooling2D() if average_places else layers.Flatten()
    x = places(layers.ReLU()(normalize(x)))
    return tf.keras.Model(images, layers.Dense(classes)(x), name="wide_resnet")


def convolution(filters: int, size: int = 3, strides: int = 1) -> tf.keras.layers.Layer:
    """Return a convolution whose weights suit the ReLUs around it (arXiv:1502.01852)."""
    return tf.keras.layers.Conv2D(
        filters, size, strides, padding="same", kernel_initializer="he_normal"
    )


def residual_block(
    x: tf.Tensor, filters: int, strides: int, normalize: Callable[[tf.Tensor], tf.Tensor]
) -> tf.Tensor:
    """Return ``x``, brought to the new shape where need be, plus two convolutions of it."""
    layers = tf.keras.layers
    active = layers.ReLU()(normalize(x))
    if x.shape[-1] != filters or strides != 1:
        x = convolution(filters, 1, strides)(active)
    inner = layers.ReLU()(normalize(convolution(filters, 3, strides)(active)))
    outer = layers.Conv2D(filters, 3, padding="same", kernel_initializer="zeros")(inner)
    return layers.Add()([x, outer])


class GhostBatchNormalization(tf.keras.layers.BatchNormalization):
    """Batch normalization over each of several equal parts of the batch: arXiv:1705.08741.

    As in the paper, each part also updates the moving averages, one after the other. Keras' own
    ``virtual_batch_size`` updates them once a step, and fails where it does not divide the batch.
    """

    def __init__(self, ghost_batches: int, **options: Any):
        super().__init__(**options)
        self.ghost_batches = ghost_batches

    def get_config(self) -> dict[str, Any]:
        """Return what makes the same layer again."""
        return {**super().get_config(), "ghost_batches": self.ghost_batches}

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Return the normalized images, in their order; for ``training`` part by part."""
        normalize = super().call
        if not training:
            return normalize(inputs, training=training)
        count = tf.shape(inputs)[0]
        cuts = [count * part // self.ghost_batches for part in range(self.ghost_batches + 1)]
        parts = [inputs[begin:end] for begin, end in itertools.pairwise(cuts)]
        return tf.concat([normalize(part, training=True) for part in parts], axis=0)


def normalization(
    kind: str, momentum: float = 0.99, ghost_batches: int = 1
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Return what normalizes a tensor: a new layer at each call.

    Args:
        kind: ``"none"``; ``"local"`` for batch normalization (arXiv:1502.03167) over the rank's
            own batch; ``"sync"`` for that over the batches of all ranks, ``hvd.init()`` first.
        momentum: how much of the moving averages stays in each update.
        ghost_batches: parts into which the rank's own batch is cut, for ``"local"``.
    """
    number = itertools.count(1)

    def normalize(x: tf.Tensor) -> tf.Tensor:
        if kind == "none":
            return x
        name = f"batch_norm_{next(number)}"
        if kind == "local":
            options = {"momentum": momentum, "name": name}
            if ghost_batches > 1:
                return GhostBatchNormalization(ghost_batches, **options)(x)
            return tf.keras.layers.BatchNormalization(**options)(x)
        import horovod.tensorflow as hvd

        # Horovod's layer still looks at a property that Keras has given up, and catches the error.
        warnings.filterwarnings("ignore", "`layer.updates` will be removed")
        return hvd.SyncBatchNormalization(momentum=momentum, name=name)(x)

    return normalize


def convnet(
    image_shape: tuple[int, int, int],
    classes: int,
    width: int = 4,
    normalize: Callable[[tf.Tensor], tf.Tensor] = lambda x: x,
) -> tf.keras.Model:
    """Return a plain network of four convolutions for images of shape (height, width, channels).

    Two of ``8 * width`` filters, a 2x2 maximum, two of ``16 * width`` filters, the mean over all
    places, and a dense layer. ``normalize`` comes between each convolution and its ReLU. Nothing in
    it is tuned to be easy to train. The output has the shape (batch, classes): logits.
    """
    layers = tf.keras.layers
    images = layers.Input(image_shape)
    x = images
    for group, filters in enumerate((8 * width, 16 * width)):
        x = layers.MaxPooling2D(2)(x) if group else x
        for _ in range(2):
            x = layers.ReLU()(normalize(layers.Conv2D(filters, 3, padding="same")(x)))
    x = layers.GlobalAveragePooling2D()(x)
    return tf.keras.Model(images, layers.Dense(classes)(x), name="convnet")


def transformer(
    image_shape: tuple[int, int, int],
    classes: int,
    width: int = 48,
    blocks: int = 12,
    norm: str = "post",
) -> tf.keras.Model:
    """Return a transformer (arXiv:1706.03762) that reads an image row by row.

    Every row of the image, of shape (height, width, channels), is a token of ``width`` features,
    plus the paper's sines for its place. ``width`` must be a multiple of 4, the number of heads.
    Each of ``blocks`` has self-attention and a layer of ``2 * width``. Layer normalization comes
    after each sum (``"post"``, as in the paper), or before what is added (``"pre"``): see
    arXiv:2002.04745. The mean over all tokens gives the output of shape (batch, classes): logits.
    """
    layers = tf.keras.layers
    height, row_length, channels = image_shape
    images = layers.Input(image_shape)
    x = layers.Reshape((height, row_length * channels))(images)
    x = layers.Dense(width)(x) + sines(height, width)
    for block in range(1, blocks + 1):
        x = residual(x, layers.MultiHeadAttention(4, width // 4), norm, inputs=2)
        inner = [layers.Dense(2 * width, activation="relu"), layers.Dense(width)]
        x = residual(x, tf.keras.Sequential(inner, name=f"dense_of_block_{block}"), norm)
    x = layers.LayerNormalization()(x) if norm == "pre" else x
    x = layers.GlobalAveragePooling1D()(x)
    return tf.keras.Model(images, layers.Dense(classes)(x), name="transformer")


def residual(x: tf.Tensor, layer: tf.keras.layers.Layer, norm: str, inputs: int = 1) -> tf.Tensor:
    """Return ``x`` plus what the layer makes of it, normalized before or after; see above."""
    normalize = tf.keras.layers.LayerNormalization()
    if norm == "pre":
        return x + layer(*[normalize(x)] * inputs)
    return normalize(x + layer(*[x] * inputs))


def sines(places: int, width: int) -> np.ndarray:
    """Return sines and cosines of each place, of shape (places, width): arXiv:1706.03762, 3.5."""
    angles = np.arange(places)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(places, width).astype(np.float32)
