"""Right: DistributedOptimizer in a loop over a dataset that is shuffled first, then sharded."""

import argparse

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow import broadcast_object, broadcast_variables

from hvdcourse import load, report
from hvdcourse.data.shards import steps_per_epoch
from hvdcourse.training.models import wide_resnet


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--weights-seed", type=int)
    return parser.parse_args()


def shuffled_then_sharded(images, labels, batch_size, seed):
    """Return this rank's dataset: another order in every epoch, the same on all ranks."""
    steps = steps_per_epoch(len(images), hvd.size(), batch_size)
    mine = len(range(hvd.rank(), len(images), hvd.size()))
    lengths = [len(part) for part in np.array_split(np.arange(mine), steps)]
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(images), seed=seed, reshuffle_each_iteration=True)
    dataset = dataset.shard(hvd.size(), hvd.rank())
    return dataset.batch(batch_size).rebatch(lengths)


def main():
    arguments = read_arguments()
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.experimental.set_visible_devices([gpus[hvd.local_rank()]], "GPU")
    data = load()
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
    tf.keras.utils.set_random_seed(arguments.weights_seed)
    model = wide_resnet(images.shape[1:], len(data.classes))
    optimizer = hvd.DistributedOptimizer(
        tf.keras.optimizers.SGD(arguments.learning_rate, momentum=0.9)
    )
    optimizer.build(model.trainable_variables)
    broadcast_variables(model.variables + list(optimizer.variables), root_rank=0)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    seed = broadcast_object(arguments.weights_seed, root_rank=0)
    tf.random.set_seed(seed)
    dataset = shuffled_then_sharded(images, labels, arguments.batch_size, seed)

    @tf.function(reduce_retracing=True)
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.minimize(loss, model.trainable_variables, tape=tape)
        return loss

    losses = []
    for _ in range(arguments.epochs):
        mean = tf.keras.metrics.Mean()
        for x, y in dataset:
            mean.update_state(train_step(x, y), sample_weight=len(x))
        total = hvd.allreduce(mean.total, name="total", op=hvd.Sum)
        count = hvd.allreduce(mean.count, name="count", op=hvd.Sum)
        losses.append(total / count)
    report("losses", losses)


if __name__ == "__main__":
    main()
