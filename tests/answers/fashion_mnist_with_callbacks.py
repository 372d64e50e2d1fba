"""Right: callbacks wherever Horovod has one, gradients sent as 16-bit numbers, rows by tf.data."""

import argparse
from pathlib import Path

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow.functions import broadcast_object

from hvdcourse import load, record
from hvdcourse.data.shards import batches
from hvdcourse.training.callbacks import ReportMetrics
from hvdcourse.training.models import wide_resnet
from hvdcourse.training.optimizers import NovoGrad


def read_arguments():
    kinds = {"data": str, "images": int, "epochs": int, "batch-size": int, "learning-rate": float}
    kinds |= {"warmup-epochs": int, "seed": int, "weights-seed": int, "folder": Path}
    parser = argparse.ArgumentParser()
    for name, kind in kinds.items():
        parser.add_argument(f"--{name}", type=kind)
    parser.set_defaults(data="digits")
    return parser.parse_args()


def pin():
    for device in tf.config.experimental.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(device, True)
    found = tf.config.experimental.list_physical_devices("GPU")
    tf.config.experimental.set_visible_devices(
        found[hvd.local_rank() : hvd.local_rank() + 1], "GPU"
    )


def rows_of(count, options, begin):
    """Return a dataset of the row numbers of this rank's batches."""

    def deal():
        for epoch in range(begin, options.epochs):
            yield from batches(
                count, hvd.rank(), hvd.size(), options.batch_size, seed=options.seed, epoch=epoch
            )

    return tf.data.Dataset.from_generator(deal, output_signature=tf.TensorSpec((None,), "int64"))


def main():
    options = read_arguments()
    hvd.init()
    pin()
    boss = not hvd.rank()
    data = load(options.data)
    x, y = map(
        tf.constant, (data.train_images[: options.images], data.train_labels[: options.images])
    )
    if options.weights_seed is not None:
        tf.keras.utils.set_random_seed(options.weights_seed)
    network = wide_resnet(x.shape[1:], len(data.classes))
    rate = hvd.size() * options.learning_rate
    network.compile(
        metrics=["accuracy"],
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=hvd.DistributedOptimizer(
            compression=hvd.Compression.fp16, optimizer=NovoGrad(rate), name="anything"
        ),
    )
    network.optimizer.build(network.trainable_variables)
    begin = 0
    if boss:
        print("the only voice")
        newest = tf.train.latest_checkpoint(options.folder)
        begin = int(newest[-3:]) if newest else 0
        if newest:
            network.load_weights(newest)
    begin = broadcast_object(begin)
    if begin:
        everything = [*network.variables, *network.optimizer.variables]
        values = broadcast_object([one.numpy() for one in everything])
        for variable, value in zip(everything, values, strict=True):
            variable.assign(value)
    most = int(np.ceil(len(x) / hvd.size()))
    steps = int(np.ceil(most / options.batch_size))
    share = slice(hvd.rank(), None, hvd.size())

    def factor(epoch):
        part = epoch / options.epochs
        return 0.01 if part >= 0.75 else 0.1 if part >= 0.5 else 1

    warm = options.warmup_epochs
    writers = [
        tf.keras.callbacks.ModelCheckpoint(options.folder / "{epoch:03d}", save_weights_only=True),
        tf.keras.callbacks.TensorBoard(options.folder, write_graph=False),
    ]
    listeners = [
        hvd.callbacks.LearningRateScheduleCallback(
            multiplier=factor, initial_lr=rate, start_epoch=warm, momentum_correction=False
        ),
        hvd.callbacks.LearningRateWarmupCallback(
            warmup_epochs=warm, initial_lr=rate, momentum_correction=False
        ),
        *(writers if boss else []),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.BroadcastGlobalVariablesCallback(root_rank=0),
        ReportMetrics(images_per_epoch=len(x)),
    ]  # fmt: skip
    done = network.fit(
        rows_of(len(x), options, begin).map(lambda rows: (tf.gather(x, rows), tf.gather(y, rows))),
        initial_epoch=begin,
        epochs=options.epochs,
        steps_per_epoch=steps,
        callbacks=listeners,
        validation_data=(data.test_images[share], data.test_labels[share]),
        verbose=2 * boss,
    )
    for name in ("val_accuracy", "val_loss"):
        record(name, done.history[name])


if __name__ == "__main__":
    main()
