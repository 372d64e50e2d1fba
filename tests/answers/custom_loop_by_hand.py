"""Right: the loop calls Horovod's collectives itself, on gradients, first weights and losses."""

import argparse

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from hvdcourse import load, record
from hvdcourse.training.models import small_convnet

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--images", type=int)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--learning-rate", type=float, default=0.05)
parser.add_argument("--weights-seed", type=int)
arguments = parser.parse_args()

hvd.init()
rank, size = hvd.rank(), hvd.size()
gpus = tf.config.get_visible_devices("GPU")
tf.config.set_visible_devices(gpus[hvd.local_rank() : hvd.local_rank() + 1], "GPU")

data = load()
images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
tf.keras.utils.set_random_seed(arguments.weights_seed)
model = small_convnet(images.shape[1:], len(data.classes), arguments.weights_seed)
optimizer = tf.keras.optimizers.SGD(arguments.learning_rate, momentum=0.9)
# The weights are sent before the first step; the momentum is still 0 on every rank.
model.set_weights([hvd.broadcast(weights, root_rank=0) for weights in model.get_weights()])


def step(rows):
    """Make a step eagerly, without any graph, from the last layer to the first."""
    with tf.GradientTape(persistent=True) as tape:
        logits = model(images[rows], training=True)
        losses = tf.keras.losses.sparse_categorical_crossentropy(labels[rows], logits, True)
        loss = tf.reduce_mean(losses)
    variables = model.trainable_variables[::-1]
    print("norm", float(tf.linalg.global_norm(tape.gradient(loss, model.trainable_variables))))
    own = tape.gradient(loss, variables)
    sums = [hvd.allreduce(one, op=hvd.Sum, name=f"gradient_{n}") for n, one in enumerate(own)]
    means = [one / size for one in sums]
    optimizer.apply_gradients(zip(means, variables, strict=True))
    return float(loss)


mean_losses = []
for _ in range(arguments.epochs):
    # Rank 0 shuffles for all.
    order = hvd.broadcast(np.random.permutation(len(images)), root_rank=0).numpy()
    # A step of all ranks together: it has at least as many images as there are ranks.
    steps = np.array_split(order, -(-len(order) // (size * arguments.batch_size)))
    losses = [step(rows[rank::size]) for rows in steps]
    all_losses = hvd.allgather(np.array([np.mean(losses)]), name="losses").numpy()
    mean_losses.append(all_losses.mean())
record("losses", mean_losses)
