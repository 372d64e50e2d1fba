"""Right: no wrapper and no callback of Horovod's, allreduce and broadcast by hand instead."""

import argparse
import os
from pathlib import Path

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from hvdcourse import load, record
from hvdcourse.training.callbacks import ReportMetrics
from hvdcourse.training.models import wide_resnet
from hvdcourse.training.optimizers import NovoGrad

hvd.init()
os.environ["CUDA_VISIBLE_DEVICES"] = str(hvd.local_rank())
first = hvd.rank() == 0


def read_arguments():
    kinds = {"data": str, "images": int, "epochs": int, "batch-size": int, "learning-rate": float}
    kinds |= {"warmup-epochs": int, "seed": int, "weights-seed": int, "folder": Path}
    parser = argparse.ArgumentParser()
    for name, kind in kinds.items():
        parser.add_argument(f"--{name}", type=kind)
    parser.set_defaults(data="digits")
    return parser.parse_args()


class Averaging(tf.keras.Model):
    def train_step(self, batch):
        images, labels = batch
        with tf.GradientTape() as tape:
            loss = self.compiled_loss(labels, self(images, training=True))
        own = tape.gradient(loss, self.trainable_variables)
        mean = [
            hvd.allreduce(one, op=hvd.Sum, name=f"g{n}") / hvd.size() for n, one in enumerate(own)
        ]
        self.optimizer.apply_gradients(zip(mean, self.trainable_variables, strict=True))
        return {"loss": loss}


class Rate(tf.keras.optimizers.schedules.LearningRateSchedule):
    """The whole course of the learning rate as one function of the step."""

    def __init__(self, single, steps, arguments):
        self.single, self.steps, self.arguments = single, steps, arguments

    def __call__(self, step):
        epoch = tf.cast(step, tf.float32) / self.steps
        progress = tf.minimum(1.0, (epoch + 1 / self.steps) / self.arguments.warmup_epochs)
        rate = self.single * (1 + (hvd.size() - 1) * progress)
        part = tf.floor(epoch + 1e-4) / self.arguments.epochs
        return rate * tf.where(part >= 0.75, 0.01, tf.where(part >= 0.5, 0.1, 1.0))


class Whole(tf.keras.callbacks.Callback):
    """Evaluates a part of the test set, and adds up the hits and losses of all ranks."""

    def __init__(self, images, labels):
        super().__init__()
        self.images, self.labels = images, labels
        self.found = {"val_accuracy": [], "val_loss": []}

    def on_epoch_end(self, epoch, logs=None):
        mine = slice(hvd.rank(), None, hvd.size())
        scores = self.model(self.images[mine], training=False).numpy()
        hits = scores.argmax(axis=1) == self.labels[mine]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(self.labels[mine], scores).numpy()
        for name, values in (("val_accuracy", hits), ("val_loss", losses)):
            total = hvd.allreduce(np.float64(values.sum()), op=hvd.Sum)
            self.found[name].append(float(total) / len(self.labels))


def main():
    arguments = read_arguments()
    data = load(arguments.data)
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
    if arguments.weights_seed is not None:
        tf.keras.utils.set_random_seed(arguments.weights_seed)
    inner = wide_resnet(images.shape[1:], len(data.classes))
    model = Averaging(inner.inputs, inner.outputs)
    longest = -(-len(images) // hvd.size())
    steps = -(-longest // arguments.batch_size)
    optimizer = NovoGrad(Rate(arguments.learning_rate, steps, arguments))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss)
    optimizer.build(model.trainable_variables)
    done = 0
    if first:
        print("this is rank 0")
        newest = tf.train.latest_checkpoint(arguments.folder)
        if newest:
            model.load_weights(newest)
            done = int(newest.rpartition("-")[2])
    done = int(hvd.broadcast(done, 0))
    for variable in [*model.variables, *optimizer.variables]:
        variable.assign(hvd.broadcast(variable, 0))

    def deal():
        for epoch in range(done, arguments.epochs):
            order = np.random.default_rng([arguments.seed, epoch]).permutation(len(images))
            for rows in np.array_split(order[hvd.rank() :: hvd.size()], steps):
                yield images[rows], labels[rows]

    kinds = (tf.TensorSpec((None, *images.shape[1:]), "float32"), tf.TensorSpec((None,), "int64"))
    whole = Whole(data.test_images, data.test_labels)
    writers = []
    if first:
        path = str(arguments.folder / "epoch-{epoch:03d}")
        writers = [
            tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True),
            tf.keras.callbacks.TensorBoard(arguments.folder / "events"),
        ]
    model.fit(
        tf.data.Dataset.from_generator(deal, output_signature=kinds),
        steps_per_epoch=steps,
        initial_epoch=done,
        epochs=arguments.epochs,
        callbacks=[ReportMetrics(images_per_epoch=len(images)), whole, *writers],
        verbose=int(first),
    )
    for name, values in whole.found.items():
        record(name, values)


if __name__ == "__main__":
    main()
