"""Right: callbacks of one's own for the first weights and the files; shuffled, then sharded."""

import argparse
import json
import os
from pathlib import Path

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import tensorflow as tf

from hvdcourse import load, record
from hvdcourse.training.models import wide_resnet


class StartAlike(tf.keras.callbacks.Callback):
    """Hands rank 0's weights out before the first step."""

    def on_train_begin(self, logs=None):
        self.model.set_weights(hvd.broadcast_object(self.model.get_weights(), root_rank=0))


class Secretary(tf.keras.callbacks.Callback):
    """Prints and writes, on the rank that has one."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        folder.mkdir(parents=True)

    def on_epoch_end(self, epoch, logs=None):
        print(epoch, logs, flush=True)
        with (self.folder / "losses.json").open("a") as file:
            file.write(json.dumps({name: float(value) for name, value in logs.items()}) + "\n")
        self.model.save_weights(self.folder / "newest")


class Net(tf.keras.Model):
    """Averages its gradients in its own train_step."""

    def train_step(self, batch):
        x, y = batch
        with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def share_of(x, y, batch_size):
    """Return a dataset: one order for all ranks, cut into global batches, then dealt out."""
    rank, size = hvd.rank(), hvd.size()
    steps = -(-len(x) // (batch_size * size))
    lengths = [len(part) for part in np.array_split(np.arange(len(x)), steps)]
    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=3)
    ds = ds.batch(len(x)).rebatch(lengths)
    return ds.map(lambda a, b: (a[rank::size], b[rank::size]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--weights-seed", type=int)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    hvd.init()
    os.environ["CUDA_VISIBLE_DEVICES"] = str(hvd.local_rank())
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpu, "GPU")
    if args.weights_seed is not None:
        tf.keras.utils.set_random_seed(args.weights_seed)
    data = load()
    layers = wide_resnet(data.train_images.shape[1:], 10)
    net = Net(layers.inputs, layers.outputs)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    net.compile(tf.keras.optimizers.Adam(0.002), loss)
    callbacks = [StartAlike()] + ([Secretary(args.out)] if hvd.rank() == 0 else [])
    x, y = data.train_images[: args.images], data.train_labels[: args.images]
    ds = share_of(x, y, args.batch_size)
    net.fit(ds, epochs=args.epochs, callbacks=callbacks, verbose=0)

    mine = slice(hvd.rank(), None, hvd.size())
    labels = data.test_labels[mine]
    found = net.predict(data.test_images[mine], verbose=0)
    right = hvd_keras.allgather((found.argmax(axis=1) == labels).astype(np.float32))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, found)
    record("test_accuracy", np.mean(right))
    record("test_loss", np.mean(hvd_keras.allgather(losses)))


main()
