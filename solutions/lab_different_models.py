"""Lab 1: in every step the ranks average their gradients, and still their models differ.

Run it:    horovodrun -np 2 python lab_different_models.py
Check it:  hvdcourse check lab_different_models

Each rank prints how far its weights are from those of rank 0. Does the distance shrink as training
goes on? Guess before you run it. Then find the cause, and repair it.
"""

import argparse
import random

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

# Step 1 is done here.
#:
from horovod.tensorflow import broadcast_variables
# End of step 1.

from hvdcourse import load
from hvdcourse.training.models import small_convnet
from hvdcourse.data.shards import batches

# Step 1: After every step of the training all ranks have the same weights.
#:
# End of step 1.


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, help="train on this many images; on all without it")
    parser.add_argument("--epochs", type=int, default=3, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=32, help="images a step, on each rank")
    return parser.parse_args()


def distance_from_rank_0(model):
    """Return how far this rank's weights are from those of rank 0, in units of these."""
    mine = np.concatenate([weights.ravel() for weights in model.get_weights()])
    first = np.array(hvd.broadcast(mine, root_rank=0, name="weights"))
    return np.linalg.norm(mine - first) / np.linalg.norm(first)


def main():
    arguments = read_arguments()
    hvd.init()
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    data = load("digits")
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]

    model = small_convnet(images.shape[1:], len(data.classes), seed=random.randrange(1_000_000))
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.02, momentum=0.9))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    # Step 1 is done here.
    #:
    # The optimizer's state needs no sending: the momentum begins with 0 on every rank.
    broadcast_variables(model.variables, root_rank=0)
    # End of step 1.

    for epoch in range(arguments.epochs):
        for rows in batches(
            len(images), hvd.rank(), hvd.size(), arguments.batch_size, seed=0, epoch=epoch
        ):
            model.train_on_batch(images[rows], labels[rows])
        _, accuracy = model.evaluate(data.test_images, data.test_labels, 256, verbose=0)
        apart = distance_from_rank_0(model)
        print(
            f"epoch {epoch + 1}: test accuracy {accuracy:.3f}, {apart:.1%} away from rank 0",
            flush=True,
        )


if __name__ == "__main__":
    main()
