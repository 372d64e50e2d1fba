"""The network that the benchmark trains."""

import tensorflow as tf


def bottleneck_resnet(
    image_shape: tuple[int, int, int] = (32, 32, 3),
    classes: int = 10,
    seed: int = 0,
    conv2d: type[tf.keras.layers.Conv2D] = tf.keras.layers.Conv2D,
) -> tf.keras.Model:
    """Return a residual network of two bottlenecks, the first of each of ResNet-50's two stages.

    The network of He et al. 2015, https://arxiv.org/abs/1512.03385 (table 1), cut off behind the
    first block of its second stage, and without batch normalization. Shapes are those for images
    of shape (32, 32, 3):

    ==================================================  ===============
    part                                                 output
    ==================================================  ===============
    7x7 convolution of 64 filters, stride 2              (16, 16, 64)
    3x3 maximum, stride 2                                (8, 8, 64)
    bottleneck 64-64-256                                 (8, 8, 256)
    bottleneck 128-128-512, stride 2                     (4, 4, 512)
    mean over the positions, and a dense layer           (classes,)
    ==================================================  ===============

    It has 467,082 parameters for 10 classes. The output has the shape (batch, classes): logits,
    without softmax, in float32 also under the policy ``mixed_bfloat16``.

    Args:
        image_shape: height, width and channels.
        classes: how many classes there are.
        seed: for the weights.
        conv2d: the layer to use in place of Keras's ``Conv2D``.
    """
    layers = tf.keras.layers
    seeds = iter(range(seed, seed + 100))

    def convolution(x: tf.Tensor, filters: int, size: int, stride: int = 1) -> tf.Tensor:
        initializer = tf.keras.initializers.HeNormal(seed=next(seeds))
        return conv2d(filters, size, stride, "same", kernel_initializer=initializer)(x)

    def bottleneck(x: tf.Tensor, narrow: int, wide: int, stride: int) -> tf.Tensor:
        shortcut = convolution(x, wide, 1, stride)
        x = layers.ReLU()(convolution(x, narrow, 1, stride))
        x = layers.ReLU()(convolution(x, narrow, 3))
        return layers.ReLU()(convolution(x, wide, 1) + shortcut)

    images = layers.Input(image_shape)
    x = layers.ReLU()(convolution(images, 64, 7, stride=2))
    x = layers.MaxPooling2D(3, 2, "same")(x)
    x = bottleneck(x, 64, 256, stride=1)
    x = bottleneck(x, 128, 512, stride=2)
    x = layers.GlobalAveragePooling2D()(x)
    initializer = tf.keras.initializers.GlorotUniform(seed=next(seeds))
    logits = layers.Dense(classes, kernel_initializer=initializer, dtype="float32")(x)
    return tf.keras.Model(images, logits)
