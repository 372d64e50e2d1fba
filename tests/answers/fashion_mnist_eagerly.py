"""Right: eager steps, one callback of its own for the rate and the saving, shares in blocks."""

import argparse
from pathlib import Path

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from hvdcourse import load, record
from hvdcourse.training.models import wide_resnet
from hvdcourse.training.optimizers import NovoGrad

hvd.init()
rank, size = hvd.rank(), hvd.size()
for number, device in enumerate(tf.config.list_physical_devices("GPU")):
    if number == hvd.local_rank():
        tf.config.set_visible_devices([device], "GPU")


def read_arguments():
    kinds = {"data": str, "images": int, "epochs": int, "batch-size": int, "learning-rate": float}
    kinds |= {"warmup-epochs": int, "seed": int, "weights-seed": int, "folder": Path}
    parser = argparse.ArgumentParser()
    for name, kind in kinds.items():
        parser.add_argument(f"--{name}", type=kind)
    parser.set_defaults(data="digits")
    return parser.parse_args()


class EachStep(tf.keras.callbacks.Callback):
    def __init__(self, arguments, steps):
        super().__init__()
        self.arguments, self.steps = arguments, steps

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
        part = epoch / self.arguments.epochs
        self.factor = 0.01 if part >= 0.75 else 0.1 if part >= 0.5 else 1.0

    def on_train_batch_begin(self, batch, logs=None):
        warm = min(
            1.0, (self.epoch * self.steps + batch) / (self.arguments.warmup_epochs * self.steps)
        )
        rate = self.arguments.learning_rate * (1 + (size - 1) * warm)
        self.model.optimizer.learning_rate = rate * self.factor

    def on_epoch_end(self, epoch, logs=None):
        for name in ("val_accuracy", "val_loss"):
            logs[name] = float(hvd.allreduce(np.float64(logs[name]), op=hvd.Average))
        if rank == 0:
            print(logs)
            self.model.save_weights(self.arguments.folder / f"after{epoch + 1}")
            with tf.summary.create_file_writer(str(self.arguments.folder)).as_default(epoch):
                tf.summary.scalar("val_loss", logs["val_loss"])


class Tape(tf.keras.Model):
    def train_step(self, batch):
        with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
            loss = self.compiled_loss(batch[1], self(batch[0], training=True))
        self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
        return {"loss": loss}


def main():
    arguments = read_arguments()
    data = load(arguments.data)
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
    if arguments.weights_seed is not None:
        tf.keras.utils.set_random_seed(arguments.weights_seed)
    plain = wide_resnet(images.shape[1:], len(data.classes))
    model = Tape(plain.inputs, plain.outputs)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(NovoGrad(0.1), loss, metrics=["accuracy"], run_eagerly=True)
    model.optimizer.build(model.trainable_variables)
    begin = np.int64(0)
    newest = tf.train.latest_checkpoint(arguments.folder) if rank == 0 else None
    if newest:
        begin = np.int64(newest.rpartition("after")[2])
        model.load_weights(newest)
    begin = int(hvd.broadcast(begin, 0))
    hvd.broadcast_variables([*model.variables, *model.optimizer.variables], 0, inplace=True)
    # Blocks instead of every size-th one.
    mine = np.array_split(np.arange(len(images)), size)[rank]
    steps = max(1, -(-len(images) // size) // arguments.batch_size)

    def deal():
        for epoch in range(begin, arguments.epochs):
            order = np.random.default_rng([rank, epoch]).permutation(mine)
            for rows in np.array_split(order, steps):
                yield images[rows], labels[rows]

    kinds = (tf.TensorSpec((None, *images.shape[1:]), "float32"), tf.TensorSpec((None,), "int64"))
    share = np.array_split(np.arange(len(data.test_images)), size)[rank]
    history = model.fit(
        tf.data.Dataset.from_generator(deal, output_signature=kinds),
        epochs=arguments.epochs,
        initial_epoch=begin,
        steps_per_epoch=steps,
        validation_data=(data.test_images[share], data.test_labels[share]),
        callbacks=[EachStep(arguments, steps)],
        verbose=0,
    )
    record("val_accuracy", history.history["val_accuracy"])
    record("val_loss", history.history["val_loss"])


if __name__ == "__main__":
    main()
