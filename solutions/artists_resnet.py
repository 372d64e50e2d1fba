"""Who painted this? A residual network learns it on many ranks, at many times the batch.

Run it:    horovodrun -np 2 python artists_resnet.py --batch-size 128
Judge it:  hvdcourse challenge --folder .

One answer to the challenge of lesson 7. It is written anew, without steps: what you start from is
artists_resnet_before.py.
"""

import argparse
import os
from pathlib import Path

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow import broadcast_variables

from hvdcourse.training.callbacks import ReportMetrics
from hvdcourse.training.checkpoints import load_newest, save
from hvdcourse.data.image_folder import find_images
from hvdcourse.data.painters import image_folder
from hvdcourse import record
from hvdcourse.data.shards import batches, shard, steps_per_epoch

# What the learning rate belongs to: the batch of the single process.
SINGLE_BATCH = 16


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="painters", help="painters, or a folder of your own")
    parser.add_argument("--images", type=int, help="train on this many images; on all without it")
    parser.add_argument("--pixels", type=int, default=64, help="height and width of the images")
    parser.add_argument("--epochs", type=int, default=6, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=16, help="images a step, on each rank")
    parser.add_argument("--learning-rate", type=float, default=0.001, help="at 16 images a step")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the images")
    parser.add_argument("--folder", type=Path, help="for checkpoints; none without it")
    return parser.parse_args()


def read_images(paths, labels, pixels):
    """Return a dataset that reads and decodes each file once, several of them at a time."""

    def read(path, label):
        image = tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)
        # The painters' files have this size already; those of your own may have any.
        image = tf.image.resize(image, (pixels, pixels), antialias=True)
        return tf.cast(tf.round(image), tf.uint8), label

    dataset = tf.data.Dataset.from_tensor_slices(([str(path) for path in paths], labels))
    # tf.data's tuner sleeps, and the end of the training would wait for it: nothing is left to it.
    options = tf.data.Options()
    options.autotune.enabled = False
    cores = len(os.sched_getaffinity(0))
    # Kept as bytes: a quarter of the memory of numbers in 0…1.
    return dataset.map(read, num_parallel_calls=cores).cache().with_options(options)


def prepare(images, labels):
    return tf.image.convert_image_dtype(images, tf.float32), labels


def training_set(paths, labels, arguments):
    """Return this rank's share, in as many batches as every other rank has."""
    mine = shard(len(paths), hvd.rank(), hvd.size())
    lengths = [
        len(rows) for rows in batches(len(paths), hvd.rank(), hvd.size(), arguments.batch_size)
    ]
    dataset = read_images([paths[one] for one in mine], labels[mine], arguments.pixels)
    dataset = dataset.shuffle(len(mine), seed=arguments.seed)
    dataset = dataset.batch(arguments.batch_size).rebatch(lengths).map(prepare)
    cardinality = tf.data.experimental.assert_cardinality(len(lengths))
    return dataset.apply(cardinality).prefetch(2)


def test_set(paths, labels, arguments):
    """Return this rank's share of the test images, and its labels."""
    mine = shard(len(paths), hvd.rank(), hvd.size())
    dataset = read_images([paths[one] for one in mine], labels[mine], arguments.pixels)
    return dataset.batch(256).map(prepare).prefetch(1), labels[mine]


def activation(x):
    # Averages of a few hundred steps: with 0.99 they would not have moved far enough.
    return tf.keras.layers.ReLU()(tf.keras.layers.BatchNormalization(momentum=0.8)(x))


def convolution(x, filters, size=3, strides=1):
    layer = tf.keras.layers.Conv2D(
        filters, size, strides, padding="same", kernel_initializer="he_normal"
    )
    return layer(x)


def residual_block(x, filters):
    active = activation(x)
    inner = activation(convolution(active, filters, strides=2))
    return convolution(inner, filters) + convolution(active, filters, size=1, strides=2)


def residual_network(pixels, painters):
    """Return the network that came with the program, with batch normalization for large steps."""
    images = tf.keras.layers.Input((pixels, pixels, 3))
    x = convolution(images, 32, size=8, strides=4)
    for filters in (32, 64):
        x = residual_block(x, filters)
    x = tf.keras.layers.GlobalAveragePooling2D()(activation(x))
    return tf.keras.Model(images, tf.keras.layers.Dense(painters)(x))


def make_optimizer(arguments, steps):
    """Return Adam; its rate follows the root of the batch, after a warmup, and ends at 0."""
    total = steps * arguments.epochs
    factor = np.sqrt(hvd.size() * arguments.batch_size / SINGLE_BATCH)
    warmup = max(1, total // 8)
    schedule = tf.keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=arguments.learning_rate,
        decay_steps=max(1, total - warmup),
        warmup_target=arguments.learning_rate * float(factor),
        warmup_steps=warmup,
    )
    return hvd.DistributedOptimizer(tf.keras.optimizers.Adam(schedule))


def class_weights(labels, painters):
    """Return a weight for each painter that makes up, in part, for having few pictures."""
    counts = np.bincount(labels, minlength=painters).clip(1)
    # The root: with the full ratio the common painters lost more than the rare ones won.
    weights = np.sqrt(len(labels) / (painters * counts))
    return dict(enumerate(weights / weights[labels].mean()))


class AverageStatistics(tf.keras.callbacks.Callback):
    """Gives all ranks the mean of their moving averages before each evaluation."""

    def on_test_begin(self, logs=None):
        for number, variable in enumerate(self.model.non_trainable_variables):
            variable.assign(hvd.allreduce(variable, name=f"statistics.{number}"))


class Checkpoints(tf.keras.callbacks.Callback):
    """Saves everything after each epoch, whole or not at all, and loads the newest."""

    def __init__(self, folder, variables):
        super().__init__()
        self.folder, self.variables = folder, variables

    def on_epoch_end(self, epoch, logs=None):
        arrays = {str(number): one.numpy() for number, one in enumerate(self.variables)}
        save(self.folder, epoch + 1, arrays)

    def load_newest(self):
        """Load the newest checkpoint that is whole; return the epoch to go on with."""
        found = load_newest(self.folder)
        if found is None:
            return 0
        for number, variable in enumerate(self.variables):
            variable.assign(found.arrays[str(number)])
        print(f"going on from {found.path.name}", flush=True)
        return found.number


def print_report(painters, labels, predicted):
    """Print, on rank 0, each painter's precision and recall over the whole test set."""
    # Counts can be added over the ranks; precision and recall cannot.
    found = {"right": labels[labels == predicted], "exist": labels, "named": predicted}
    counts = [
        hvd.allreduce(np.bincount(these, minlength=len(painters)), op=hvd.Sum, name=name).numpy()
        for name, these in found.items()
    ]
    report = dict(zip(painters, np.transpose(counts).tolist(), strict=True))
    record("report", report)
    for painter, (right, exist, named) in report.items() if hvd.rank() == 0 else ():
        precision, recall = right / max(named, 1), right / exist
        print(f"{painter:20} precision {precision:.2f}, recall {recall:.2f}, {exist} pictures")


def main():
    arguments = read_arguments()
    hvd.init()
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    first = hvd.rank() == 0
    found = find_images(image_folder(arguments.data))
    chosen = np.random.default_rng(0).permutation(len(found.train_paths))[: arguments.images]
    paths = [found.train_paths[number] for number in chosen]
    labels = found.train_labels[chosen]
    test, test_labels = test_set(found.test_paths, found.test_labels, arguments)
    if first:
        print(f"{len(paths)} images of {len(found.classes)} painters", flush=True)

    steps = steps_per_epoch(len(paths), hvd.size(), arguments.batch_size)
    model = residual_network(arguments.pixels, len(found.classes))
    optimizer = make_optimizer(arguments, steps)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    optimizer.build(model.trainable_variables)

    checkpoints, first_epoch = None, 0
    variables = [*model.variables, *optimizer.variables]
    if arguments.folder and first:
        checkpoints = Checkpoints(arguments.folder, variables)
        first_epoch = checkpoints.load_newest()
    first_epoch = int(hvd.broadcast(first_epoch, root_rank=0))
    broadcast_variables(variables, root_rank=0)

    callbacks = [AverageStatistics(), hvd.callbacks.MetricAverageCallback()]
    model.fit(
        training_set(paths, labels, arguments),
        epochs=arguments.epochs,
        initial_epoch=first_epoch,
        class_weight=class_weights(labels, len(found.classes)),
        validation_data=test,
        callbacks=[*callbacks, ReportMetrics(len(paths)), *([checkpoints] if checkpoints else [])],
        verbose=2 if first else 0,
    )
    predicted = model.predict(test, verbose=0).argmax(axis=1)
    print_report(found.classes, test_labels, predicted)


if __name__ == "__main__":
    main()
