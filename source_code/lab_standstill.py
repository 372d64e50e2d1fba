"""Lab 2: the training begins, and then the script stands still: no error, and no end.

Run it:    horovodrun -np 2 python lab_standstill.py
Check it:  hvdcourse check lab_standstill

How far does each rank get? Guess before you run it. Then find the cause, and repair it. Ctrl-C
ends a run that stands still. `hvdcourse run` ends it by itself, and names the line in which each
rank waits.
"""

import argparse

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from hvdcourse import load
from hvdcourse.training.models import small_convnet
from hvdcourse import record
from hvdcourse.data.shards import batches

# TODO: Step 1: The script runs to its end. In every epoch `losses` gets, on every rank, the mean of
# all ranks' losses, and only rank 0 prints it.


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=256, help="train on this many images")
    parser.add_argument("--epochs", type=int, default=3, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=32, help="images a step, on each rank")
    return parser.parse_args()


def train_step(model, optimizer, images, labels):
    """Make one step and return the mean loss of this rank's batch."""
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    gradients = hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return float(loss)


def main():
    arguments = read_arguments()
    hvd.init()
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    data = load("digits")
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
    # With the same seed all ranks begin with the same weights.
    model = small_convnet(images.shape[1:], len(data.classes), seed=0)
    optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)

    losses = []
    for epoch in range(arguments.epochs):
        steps = batches(len(images), hvd.rank(), hvd.size(), arguments.batch_size, epoch=epoch)
        own = [train_step(model, optimizer, images[rows], labels[rows]) for rows in steps]
        if hvd.rank() == 0:
            loss = hvd.allreduce(np.mean(own), op=hvd.Average, name="loss").numpy()
            print(f"epoch {epoch + 1}: loss {loss:.3f}", flush=True)
            losses.append(loss)
    record("losses", losses)


if __name__ == "__main__":
    main()
