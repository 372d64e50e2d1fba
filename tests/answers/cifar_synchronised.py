"""Right: statistics of all ranks' batches, behind the convolutions; one callback for the rate."""

import argparse
import itertools

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow import SyncBatchNormalization

from hvdcourse import load
from hvdcourse.data.shards import batches, steps_per_epoch
from hvdcourse.training.optimizers import LAMB

layers = tf.keras.layers
numbers = itertools.count()


def read_arguments():
    kinds = {"data": str, "images": int, "epochs": int, "batch-size": int, "learning-rate": float}
    kinds |= {"lamb-learning-rate": float, "warmup-epochs": int, "seed": int, "weights-seed": int}
    parser = argparse.ArgumentParser()
    for name, kind in kinds.items():
        parser.add_argument(f"--{name}", type=kind)
    parser.set_defaults(data="digits")
    return parser.parse_args()


def normalized(x, filters, size=3, strides=1):
    x = layers.Conv2D(filters, size, strides, "same", use_bias=False)(x)
    # Its own names are all the same, which Keras refuses.
    name = f"normalized_{next(numbers)}"
    return SyncBatchNormalization(momentum=0.85, name=name)(x)


def network(shape, classes):
    images = layers.Input(shape)
    x = layers.ReLU()(normalized(images, 16))
    for filters in (16, 32):
        inner = layers.ReLU()(normalized(x, filters, strides=filters // 16))
        shortcut = x if filters == 16 else normalized(x, filters, 1, 2)
        x = layers.ReLU()(normalized(inner, filters) + shortcut)
    return tf.keras.Model(images, layers.Dense(classes)(layers.Flatten()(x)))


class EachStep(tf.keras.callbacks.Callback):
    def __init__(self, arguments, steps):
        super().__init__()
        self.arguments, self.steps = arguments, steps

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        done = (self.epoch * self.steps + batch) / (self.arguments.warmup_epochs * self.steps)
        factor = 1 + (hvd.size() - 1) * min(1.0, done)
        if self.epoch >= self.arguments.epochs / 2:
            factor *= 0.1
        self.model.optimizer.learning_rate = self.arguments.lamb_learning_rate * factor


def main():
    arguments = read_arguments()
    hvd.init()
    data = load(arguments.data)
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
    tf.keras.utils.set_random_seed(int(arguments.weights_seed))
    model = network(images.shape[1:], len(data.classes))
    optimizer = LAMB(
        arguments.lamb_learning_rate,
        weight_decay=0.01,
        exclude_from_weight_decay=["bias", "gamma", "beta"],
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(hvd.DistributedOptimizer(optimizer), loss, metrics=["accuracy"])
    steps = steps_per_epoch(len(images), hvd.size(), arguments.batch_size)

    def deal():
        for epoch in range(arguments.epochs):
            order = np.random.default_rng([arguments.seed, epoch]).permutation(len(images))
            for rows in batches(len(images), hvd.rank(), hvd.size(), arguments.batch_size):
                yield images[order[rows]], labels[order[rows]]

    kinds = (tf.TensorSpec((None, *images.shape[1:]), "float32"), tf.TensorSpec((None,), "int64"))
    model.fit(
        tf.data.Dataset.from_generator(deal, output_signature=kinds),
        steps_per_epoch=steps,
        epochs=arguments.epochs,
        callbacks=[
            hvd.callbacks.BroadcastGlobalVariablesCallback(0),
            EachStep(arguments, steps),
        ],
        verbose=0,
    )


if __name__ == "__main__":
    main()
