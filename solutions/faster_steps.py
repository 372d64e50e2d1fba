"""Train a small network with one of the things that make a step cheaper, and report what it brings.

Run it:  horovodrun -np 2 python faster_steps.py --compression fp16

This script is complete: it is an experiment of lesson 5, not an exercise.
"""

import argparse

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow import broadcast_variables

from hvdcourse import load
from hvdcourse.data.batches import without_tuner
from hvdcourse.data.shards import shard
from hvdcourse.training.callbacks import ReportMetrics
from hvdcourse.training.models import wide_resnet

ROWS = 50_000  # of the embedding table
CHOICES = {
    "network": ("dense", "convolutional", "embedding"),
    "compression": ("none", "fp16"),
    "sparse": ("allgather", "allreduce"),
    "precision": ("float32", "mixed_bfloat16"),
    "feed": ("ready", "shifted"),
}


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="a data set, or a folder of images")
    parser.add_argument("--epochs", type=int, default=4, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=32, help="images a step on each rank")
    parser.add_argument(
        "--passes", type=int, default=1, help="batches whose gradients are added up"
    )
    parser.add_argument("--xla", action="store_true", help="compile the layers with XLA")
    parser.add_argument("--seed", type=int, default=0, help="for the weights and the order")
    for name, choices in CHOICES.items():
        parser.add_argument(f"--{name}", choices=choices, default=choices[0])
    return parser.parse_args()


def shift(image, label):
    """Move an image by up to one pixel each way."""
    height, width, channels = image.shape
    larger = tf.image.resize_with_crop_or_pad(image, height + 2, width + 2)
    return tf.image.random_crop(larger, (height, width, channels)), label


def dataset_of(data, arguments):
    """Return this rank's share of the training images, in batches."""
    images = len(data.train_images)
    mine = shard(images, hvd.rank(), hvd.size(), seed=arguments.seed)[: images // hvd.size()]
    dataset = tf.data.Dataset.from_tensor_slices((data.train_images[mine], data.train_labels[mine]))
    dataset = dataset.cache().shuffle(len(mine), seed=arguments.seed)
    if arguments.feed == "shifted":
        dataset = dataset.map(shift)
    return without_tuner(dataset.batch(arguments.batch_size, drop_remainder=True).prefetch(2))


def embedding_network(shape, classes):
    """Return a network with a large table, of which a batch uses few rows.

    Each pixel and its right neighbor are a word, and the table has a vector for each word.
    """
    layers, pixels = tf.keras.layers, int(np.prod(shape))

    def words(images):
        levels = tf.cast(16 * tf.reshape(images, (-1, pixels)), tf.int32)
        return (tf.range(pixels - 1) * 289 + levels[:, :-1] * 17 + levels[:, 1:]) % ROWS

    table = layers.Embedding(ROWS, 16)
    return tf.keras.Sequential(
        [layers.Input(shape), layers.Lambda(words), table, layers.Flatten(), layers.Dense(classes)]
    )


def network(data, arguments):
    """Return the network: much to send and little to compute, much to compute, or a large table."""
    layers, shape, classes = tf.keras.layers, data.train_images.shape[1:], len(data.classes)
    if arguments.network == "convolutional":
        return wide_resnet(shape, classes, width=4)
    if arguments.network == "embedding":
        return embedding_network(shape, classes)
    hidden = [layers.Dense(1024, activation="relu") for _ in range(2)]
    return tf.keras.Sequential(
        [layers.Input(shape), layers.Flatten(), *hidden, layers.Dense(classes)]
    )


def main():
    arguments = read_arguments()
    hvd.init()
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    tf.keras.utils.set_random_seed(arguments.seed)
    tf.keras.mixed_precision.set_global_policy(arguments.precision)
    data = load(arguments.data)
    model = network(data, arguments)
    optimizer = hvd.DistributedOptimizer(
        tf.keras.optimizers.SGD(0.05, momentum=0.9),
        compression=getattr(hvd.Compression, arguments.compression),
        sparse_as_dense=arguments.sparse == "allreduce",
        backward_passes_per_step=arguments.passes,
        # The mean over the passes, so that the learning rate keeps its meaning.
        average_aggregated_gradients=True,
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if arguments.xla:
        # The layers alone, forward and backward: XLA for processors has no allreduce of Horovod's.
        model.call = tf.function(model.call, jit_compile=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    broadcast_variables(model.variables, root_rank=0)
    model.fit(
        dataset_of(data, arguments),
        epochs=arguments.epochs,
        validation_data=(data.test_images, data.test_labels),
        validation_batch_size=len(data.test_images),
        callbacks=[
            hvd.callbacks.MetricAverageCallback(),
            ReportMetrics(images_per_epoch=len(data.train_images) // hvd.size() * hvd.size()),
        ],
        verbose=0,
    )


if __name__ == "__main__":
    main()
