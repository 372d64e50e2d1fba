"""A residual network on large batches: already distributed, but it learns slowly.

Run it:    horovodrun -np 2 python cifar.py
Check it:  hvdcourse check cifar

Learns digits of 8x8 pixels; with --data cifar10 --blocks 3, photographs (170 MB, once). Every rank
takes large batches, so that a training has few steps. Steps 1 to 4 make it converge in these.
"""

import argparse

import horovod.tensorflow.keras as hvd
import tensorflow as tf
from horovod.tensorflow import broadcast_variables

from hvdcourse.training.callbacks import ReportMetrics
from hvdcourse import load
from hvdcourse.data.batches import dataset_of_batches
from hvdcourse.training.optimizers import BIAS_AND_NORM, LAMB
from hvdcourse import record
from hvdcourse.data.shards import batches, shard, steps_per_epoch


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="cifar10, another set, or a folder")
    parser.add_argument("--images", type=int, help="train on this many images; on all without it")
    parser.add_argument("--blocks", type=int, default=1, help="residual blocks in a group")
    parser.add_argument("--epochs", type=int, default=4, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=128, help="images a step, on each rank")
    parser.add_argument("--learning-rate", type=float, default=0.02, help="of one process, SGD's")
    parser.add_argument("--lamb-learning-rate", type=float, default=0.01, help="LAMB's (step 4)")
    parser.add_argument("--warmup-epochs", type=int, default=1, help="to warm the rate up (step 3)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the images")
    parser.add_argument("--weights-seed", type=int, help="of the first weights; random without it")
    return parser.parse_args()


def activation(x):
    # Step 1: Every activation is normalized over its batch before the ReLU. The evaluation uses
    # moving averages of the batches' statistics, and does as well as the training: after these few
    # steps the averages have caught up with the batches' statistics.
    # Averages start at mean 0 and variance 1. After 24 steps a momentum of 0.99, Keras' default,
    # leaves 79 % of that, and 0.9 leaves 8 %. Each rank's averages are of its own images. This
    # script keeps them apart for brevity; in your own, average them over the ranks before you
    # evaluate or save, as AverageStatistics in artists_resnet.py does.
    x = tf.keras.layers.BatchNormalization(momentum=0.9)(x)
    return tf.keras.layers.ReLU()(x)


def convolution(x, filters, size=3, strides=1):
    layer = tf.keras.layers.Conv2D(
        filters, size, strides, padding="same", kernel_initializer="he_normal"
    )
    return layer(x)


def residual_block(x, filters, strides):
    """Return what comes in, brought to the new shape, plus two convolutions of it."""
    active = activation(x)
    if x.shape[-1] != filters:
        x = convolution(active, filters, size=1, strides=strides)
    inner = activation(convolution(active, filters, strides=strides))
    return x + convolution(inner, filters)


def residual_network(image_shape, classes, blocks):
    """Return the network for CIFAR-10 of arXiv:1512.03385, activated as in arXiv:1603.05027.

    It has 6 * blocks + 2 layers, in three groups at resolutions that halve.
    """
    images = tf.keras.layers.Input(image_shape)
    x = convolution(images, 16)
    for filters in (16, 32, 64):
        for block in range(blocks):
            x = residual_block(x, filters, strides=2 if filters > 16 and block == 0 else 1)
    x = tf.keras.layers.GlobalAveragePooling2D()(activation(x))
    return tf.keras.Model(images, tf.keras.layers.Dense(classes)(x))


def full_rate(single_rate):
    """Return the learning rate of the whole training, from that of a single process."""
    # Step 2: The rate suits the global batch, which grows with the number of ranks.
    # k times the images make k times fewer steps, so each is k times as long (arXiv:1706.02677).
    return single_rate * hvd.size()


def make_optimizer(arguments):
    # TODO: Step 4: The optimizer is LAMB, with --lamb-learning-rate instead of --learning-rate,
    # scaled in the same way. It adapts the step to each layer's weights. Biases and the parameters
    # of normalizations are exceptions: they get no weight decay, and move as with Adam. This
    # course's LAMB, imported above, takes patterns for their names as `exclude_from_weight_decay`,
    # and what gets no weight decay gets no trust ratio either.
    optimizer = tf.keras.optimizers.SGD(full_rate(arguments.learning_rate), momentum=0.9)
    return hvd.DistributedOptimizer(optimizer)


def rate_setters(learning_rate, steps, arguments):
    """Return the callbacks that set the learning rate; an epoch has this many steps."""

    def factor(epoch):
        return 1 if epoch < arguments.epochs / 2 else 0.1

    # Step 3: In the first --warmup-epochs epochs the rate rises step by step, from that of a single
    # process to the full one. After them the schedule alone sets it, as in fashion_mnist.py.
    # Random weights do not survive long steps. A correction of the momentum would need a
    # variable; in today's Keras it is a plain number.
    warmup = hvd.callbacks.LearningRateWarmupCallback(
        learning_rate, arguments.warmup_epochs, momentum_correction=False, steps_per_epoch=steps
    )
    schedule = hvd.callbacks.LearningRateScheduleCallback(
        learning_rate, factor, start_epoch=arguments.warmup_epochs, momentum_correction=False
    )
    return [warmup, schedule]


def training_batches(images, labels, arguments):
    """Return this rank's batches of all epochs."""

    def all_batches():
        for epoch in range(arguments.epochs):
            for rows in batches(
                len(images), hvd.rank(), hvd.size(), arguments.batch_size,
                seed=arguments.seed, epoch=epoch,
            ):  # fmt: skip
                yield images[rows], labels[rows]

    return dataset_of_batches(all_batches, images, labels)


def main():
    arguments = read_arguments()
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    data = load(arguments.data)
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
    if arguments.weights_seed is not None:
        tf.keras.utils.set_random_seed(arguments.weights_seed)
    model = residual_network(images.shape[1:], len(data.classes), arguments.blocks)
    optimizer = make_optimizer(arguments)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    broadcast_variables(model.variables, root_rank=0)

    steps = steps_per_epoch(len(images), hvd.size(), arguments.batch_size)
    mine = shard(len(data.test_images), hvd.rank(), hvd.size())
    history = model.fit(
        training_batches(images, labels, arguments),
        epochs=arguments.epochs,
        steps_per_epoch=steps,
        validation_data=(data.test_images[mine], data.test_labels[mine]),
        validation_batch_size=256,
        callbacks=[
            hvd.callbacks.MetricAverageCallback(),
            *rate_setters(float(optimizer.learning_rate), steps, arguments),
            ReportMetrics(images_per_epoch=len(images)),
        ],
        verbose=2 if hvd.rank() == 0 else 0,
    )
    record("val_accuracy", history.history["val_accuracy"])


if __name__ == "__main__":
    main()
