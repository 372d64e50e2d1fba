"""Lab 3: with 64 images the script runs to its end; with 65 it stands still.

Run it:    horovodrun -np 2 python lab_one_image_more.py
Check it:  hvdcourse check lab_one_image_more

Try both: --images 64, then the default. Why does one image matter? Guess before you run it. Then
find the cause, and repair it. Ctrl-C ends a run that stands still. `hvdcourse run` ends it by
itself, and names the line in which each rank waits.
"""

import argparse

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from hvdcourse import load
from hvdcourse.training.models import small_convnet


# TODO: Step 1: The script runs to its end, with any number of images. In an epoch the ranks
# together train on each image once.


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=65, help="train on this many images")
    parser.add_argument("--epochs", type=int, default=3, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=32, help="images a step, on each rank")
    return parser.parse_args()


def rows_of_epoch(count, batch_size):
    """Return this rank's batches as a list of arrays: the numbers of the images of each batch."""
    mine = np.arange(hvd.rank(), count, hvd.size())
    return [mine[start : start + batch_size] for start in range(0, len(mine), batch_size)]


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

    steps = rows_of_epoch(len(images), arguments.batch_size)
    print(f"images in each step of mine: {[len(rows) for rows in steps]}", flush=True)
    for epoch in range(arguments.epochs):
        own = [train_step(model, optimizer, images[rows], labels[rows]) for rows in steps]
        loss = hvd.allreduce(np.mean(own), op=hvd.Average, name="loss").numpy()
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1}: loss {loss:.3f}", flush=True)


if __name__ == "__main__":
    main()
