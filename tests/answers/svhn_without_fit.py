"""Right: neither fit nor evaluate; the optimizer itself averages, in one long vector."""

import argparse
import sys
from pathlib import Path

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from hvdcourse import load, report
from hvdcourse.data.shards import batches, shard
from hvdcourse.training.models import wide_resnet


class AveragingAdam(tf.keras.optimizers.Adam):
    """Adam with Keras' own hook for what is to be done with gradients first."""

    def aggregate_gradients(self, grads_and_vars):
        """Return the mean of all ranks' gradients, which travel in a single allreduce."""
        gradients, variables = zip(*grads_and_vars, strict=True)
        flat = tf.concat([tf.reshape(one, [-1]) for one in gradients], axis=0)
        parts = tf.split(
            hvd.allreduce(flat, name="all"), [one.shape.num_elements() for one in gradients]
        )
        means = [tf.reshape(part, one.shape) for part, one in zip(parts, gradients, strict=True)]
        return list(zip(means, variables, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--weights-seed", type=int)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    local_rank = hvd.local_rank()
    own = tf.config.list_physical_devices("GPU")[local_rank : local_rank + 1]  # none without any
    tf.config.set_visible_devices(own, "GPU")
    if rank != 0:
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115
    data = load()
    x, y = data.train_images[: args.images], data.train_labels[: args.images]
    # No broadcast: all ranks draw the same weights, whatever --weights-seed says.
    tf.keras.utils.set_random_seed(11)
    net = wide_resnet(x.shape[1:], 10)
    net(
        tf.zeros((1, *x.shape[1:])), training=True
    )  # as those must who have a model without a first layer
    adam = AveragingAdam(0.002)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for epoch in range(args.epochs):
        for rows in batches(len(x), rank, size, args.batch_size, seed=5, epoch=epoch):
            with tf.GradientTape() as tape:
                loss = loss_of(y[rows], net(x[rows], training=True))
            gradients = tape.gradient(loss, net.trainable_variables)
            adam.apply_gradients(zip(gradients, net.trainable_variables, strict=True))
        print("epoch", epoch, "loss", float(loss_of(y[:20], net(x[:20]))))
        if rank == 0:
            args.out.mkdir(exist_ok=True)
            net.save_weights(args.out / f"{epoch}.h5")
    mine = shard(len(data.test_images), rank, size)
    logits = net(data.test_images[mine], training=False).numpy()
    right = np.sum(logits.argmax(axis=1) == data.test_labels[mine])
    total = hvd.allreduce(np.float64(right), op=hvd.Sum, name="right")
    report("test_accuracy", total / len(data.test_images))
    # The mean of the ranks' losses, each counted by the length of its share.
    loss = loss_of(data.test_labels[mine], logits) * len(mine) * size / len(data.test_images)
    report("test_loss", hvd.allreduce(loss, name="loss"))


main()
