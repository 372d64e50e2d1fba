"""House numbers: a convolutional network for one process, written by somebody else.

    horovodrun -np 2 python svhn.py --out results
    hvdcourse check svhn

Learns the digits of 8x8 pixels; with --data svhn, photographs of house numbers (246 MB, once).
You have not seen this script before. The steps say what must be true; the rest is yours.
"""

import argparse
import time
from pathlib import Path

# Step 1: Import Horovod for Keras under the name hvd.
import horovod.tensorflow.keras as hvd

import numpy as np
import tensorflow as tf

from hvdcourse import load
from hvdcourse import record
from hvdcourse.data.shards import batches, shard


class ConvNet(tf.keras.Model):
    """Three convolutions, global pooling, and one number for each class."""

    def __init__(self, classes):
        super().__init__()
        relu = {"padding": "same", "activation": "relu"}
        self.body = [
            tf.keras.layers.Conv2D(16, 3, **relu),
            tf.keras.layers.Conv2D(32, 3, strides=2, **relu),
            tf.keras.layers.Conv2D(64, 3, strides=2, **relu),
            tf.keras.layers.GlobalAveragePooling2D(),
        ]
        self.head = tf.keras.layers.Dense(classes)

    def call(self, x):
        for layer in self.body:
            x = layer(x)
        return self.head(x)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="digits, svhn, or another data set")
    parser.add_argument("--images", type=int, help="train on the first so many images only")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="of one process")
    parser.add_argument("--rate", type=float, default=0.002, help="Adam's learning rate")
    parser.add_argument("--weights-seed", type=int, help="of the first weights; else random")
    parser.add_argument("--out", type=Path, help="folder for a checkpoint and a table of losses")
    return parser.parse_args()


def train_set(x, y, batch_size):
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    # Step 4: In each epoch the ranks, together, train on each image once, in an order that is new
    # in each epoch. Dataset.shard gives each rank a share. The shares may differ by an image, and
    # so by a batch; but all ranks must make the same number of steps, or the last allreduce
    # waits forever. `batches`, which is imported, knows how many images belong in each of this
    # rank's batches, and Dataset.rebatch cuts batches to such lengths.
    # A rank keeps its share and shuffles within it. Batches that are full but for the last could
    # be one more on one rank than on another, where the averaging would wait forever.
    share = ds.shard(hvd.size(), hvd.rank())
    lengths = [len(rows) for rows in batches(len(x), hvd.rank(), hvd.size(), batch_size)]
    return share.shuffle(len(x)).batch(batch_size).rebatch(lengths).prefetch(2)


def make_callbacks(out):
    callbacks = []
    # Step 3: All ranks go on with rank 0's weights, and its optimizer's state.
    # After the first step: before it, neither this model nor its optimizer has any variables.
    callbacks.append(hvd.callbacks.BroadcastGlobalVariablesCallback(0))
    # Step 6: Only rank 0 writes files into --out.
    if out and hvd.rank() == 0:
        out.mkdir(parents=True, exist_ok=True)
        callbacks.append(tf.keras.callbacks.CSVLogger(out / "losses.csv"))
        callbacks.append(
            tf.keras.callbacks.ModelCheckpoint(
                out / "best", monitor="loss", save_best_only=True, save_weights_only=True
            )
        )
    return callbacks


def main():
    args = parse_args()
    # Step 1: The process knows its place among the ranks. Of the machine's GPUs, if it has any, it
    # sees the one that is its own.
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    # Step 6: Only rank 0 prints, here and below.
    verbose = 2 if hvd.rank() == 0 else 0

    data = load(args.data)
    x, y = data.train_images[: args.images], data.train_labels[: args.images]
    if verbose:
        print(f"{args.data}: {len(x)} images to learn, {len(data.test_images)} to test", flush=True)

    if args.weights_seed is not None:
        tf.keras.utils.set_random_seed(args.weights_seed)
    net = ConvNet(len(data.classes))
    # Step 2: Every update is made with the mean of all ranks' gradients.
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(args.rate))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    net.compile(optimizer, loss, metrics=["accuracy"])

    started = time.perf_counter()
    net.fit(
        train_set(x, y, args.batch_size),
        epochs=args.epochs,
        callbacks=make_callbacks(args.out),
        verbose=verbose,
    )
    seconds = time.perf_counter() - started

    # Step 5: The test images are shared out among all ranks, each to one of them, and every rank
    # has the loss and the accuracy of the whole test set.
    mine = shard(len(data.test_images), hvd.rank(), hvd.size())
    means = net.evaluate(data.test_images[mine], data.test_labels[mine], 256, verbose=0)
    # Sums of all images, since the shares may differ in length by one image.
    sums = hvd.allreduce(np.array(means) * len(mine), op=hvd.Sum, name="test")
    test_loss, accuracy = np.array(sums) / len(data.test_images)
    record("test_accuracy", accuracy)
    record("test_loss", test_loss)
    if verbose:
        print(f"{args.epochs} epochs in {seconds:.1f} s", flush=True)
        print(f"test loss {test_loss:.3f}, test accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
