"""Lab 4: the ranks agree until the run is resumed from a file; then they drift apart.

Run it:    horovodrun -np 2 python lab_drift_after_resume.py
Check it:  hvdcourse check lab_drift_after_resume

Each rank prints how far its weights are from those of rank 0. Is there any error or warning? Guess
before you run it. Then find the cause, and repair it.
"""

import argparse
import tempfile
import warnings
from pathlib import Path

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

from hvdcourse import load
from hvdcourse.training.models import small_convnet
from hvdcourse.data.shards import batches

# Step 1: After the resume the ranks agree as they did before it, and their optimizers go on where
# they stopped.


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=512, help="train on this many images")
    parser.add_argument("--epochs", type=int, default=2, help="before, and again after, the resume")
    parser.add_argument("--batch-size", type=int, default=32, help="images a step, on each rank")
    return parser.parse_args()


def distance_from_rank_0(model):
    """Return how far this rank's weights are from those of rank 0, in units of these."""
    mine = np.concatenate([weights.ravel() for weights in model.get_weights()])
    first = np.array(hvd.broadcast(mine, root_rank=0, name="weights"))
    return np.linalg.norm(mine - first) / np.linalg.norm(first)


def train(model, images, labels, arguments, when):
    """Train for --epochs epochs; print after each how far the ranks are apart."""
    for epoch in range(arguments.epochs):
        for rows in batches(
            len(images), hvd.rank(), hvd.size(), arguments.batch_size, seed=0, epoch=epoch
        ):
            model.train_on_batch(images[rows], labels[rows])
        apart = distance_from_rank_0(model)
        print(f"epoch {epoch + 1} {when} the resume: {apart:.2%} away from rank 0", flush=True)


def main():
    arguments = read_arguments()
    hvd.init()
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    data = load("digits")
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
    # With the same seed all ranks begin with the same weights.
    model = small_convnet(images.shape[1:], len(data.classes), seed=0)
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.02, momentum=0.9))
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    train(model, images, labels, arguments, "before")

    # This stands for a second run: each rank saves its model to a file and loads it again.
    with tempfile.TemporaryDirectory(prefix="hvdcourse-lab-") as folder:
        path = Path(folder) / "model.h5"
        # Keras recommends files that end in .keras. The script needs the older format.
        warnings.filterwarnings("ignore", "You are saving your model as an HDF5 file")
        model.save(path)
        # Step 1 is done here.
        # The file only says "SGD", so Keras makes its own SGD, which does not average. Horovod's
        # load_model wraps the optimizer again, but cannot read .keras files.
        model = hvd.load_model(path)
    train(model, images, labels, arguments, "after")


if __name__ == "__main__":
    main()
