"""Right: fit is fed with arrays and evaluates shares itself; all ranks broadcast their sums."""

import argparse
import random
from pathlib import Path

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow import broadcast_variables

from hvdcourse import load, record
from hvdcourse.data.shards import batches, steps_per_epoch
from hvdcourse.training.models import small_convnet

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--images", type=int)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--weights-seed", type=int, default=random.randrange(99))
parser.add_argument("--out", type=Path)


def endless(x, y, batch_size):
    """Yield this rank's batches for ever."""
    epoch = 0
    while True:
        for rows in batches(len(x), hvd.rank(), hvd.size(), batch_size, seed=1, epoch=epoch):
            yield x[rows], y[rows]
        epoch += 1


def main():
    args = parser.parse_args()
    hvd.init()
    local_rank = hvd.local_rank()
    own = tf.config.list_physical_devices("GPU")[local_rank : local_rank + 1]  # none without any
    tf.config.set_visible_devices(own, "GPU")
    first = hvd.rank() == 0
    data = load()
    x, y = data.train_images[: args.images], data.train_labels[: args.images]
    net = small_convnet(x.shape[1:], 10, args.weights_seed)
    # The gradients travel as half as many bytes.
    adam = hvd.DistributedOptimizer(
        tf.keras.optimizers.legacy.Adam(0.002), compression=hvd.Compression.fp16
    )
    net.compile(
        adam, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
    )
    broadcast_variables(net.variables, root_rank=0)
    callbacks = []
    if first:
        args.out.mkdir()
        callbacks += [
            tf.keras.callbacks.CSVLogger(args.out / "table.csv"),
            tf.keras.callbacks.ModelCheckpoint(str(args.out / "{epoch}.h5")),
        ]
    share = np.array_split(np.arange(len(data.test_images)), hvd.size())[hvd.rank()]
    history = net.fit(
        endless(x, y, args.batch_size),
        steps_per_epoch=steps_per_epoch(len(x), hvd.size(), args.batch_size),
        epochs=args.epochs,
        validation_data=(data.test_images[share], data.test_labels[share]),
        callbacks=callbacks,
        verbose=2 if first else 0,
    )
    for name in ("accuracy", "loss"):
        sums = np.array(history.history[f"val_{name}"]) * len(share)
        of_ranks = [hvd.broadcast(sums, rank, name=f"{name}.{rank}") for rank in range(hvd.size())]
        record(f"test_{name}", sum(of_ranks) / len(data.test_images))


main()
