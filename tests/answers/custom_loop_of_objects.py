"""Right: a Keras model's own train_step, the tape wrapped there, and objects sent as they are."""

import argparse

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from hvdcourse import load, record
from hvdcourse.data.shards import batches, shard
from hvdcourse.training.models import wide_resnet

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--images", type=int)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--learning-rate", type=float, default=0.05)
parser.add_argument("--weights-seed", type=int)


class Averaging(tf.keras.Model):
    """A model whose train_on_batch averages the gradients in one group."""

    def train_step(self, batch):
        images, labels = batch
        with tf.GradientTape() as tape:
            loss = self.compute_loss(images, labels, self(images, training=True))
        variables = self.trainable_variables
        gradients = hvd.DistributedGradientTape(tape, num_groups=1).gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return {"loss": loss}


def first_step_done(model):
    """Hand rank 0's weights, and its optimizer's state, to everyone."""
    model.set_weights(hvd.broadcast_object(model.get_weights(), root_rank=0))
    state = [variable.numpy() for variable in model.optimizer.variables]
    for variable, value in zip(
        model.optimizer.variables, hvd.broadcast_object(state, root_rank=0), strict=True
    ):
        variable.assign(value)


def main():
    arguments = parser.parse_args()
    hvd.init()
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    data = load()
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
    tf.keras.utils.set_random_seed(arguments.weights_seed)
    layers = wide_resnet(images.shape[1:], len(data.classes))
    model = Averaging(layers.inputs, layers.outputs)
    model.compile(
        tf.keras.optimizers.SGD(arguments.learning_rate, momentum=0.9),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    # A rank keeps its images, and goes through them in an order that no other rank knows.
    mine = shard(len(images), hvd.rank(), hvd.size())
    parts = batches(len(images), hvd.rank(), hvd.size(), arguments.batch_size)
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    mean_losses, first = [], True
    for _ in range(arguments.epochs):
        sums = 0.0
        for rows in np.split(np.random.permutation(mine), cuts):
            sums += len(rows) * model.train_on_batch(images[rows], labels[rows])
            if first:
                first_step_done(model)
                first = False
        pairs = hvd.allgather_object((sums, len(mine)))
        mean_losses.append(sum(s for s, _ in pairs) / sum(n for _, n in pairs))
    record("losses", mean_losses)


if __name__ == "__main__":
    main()
