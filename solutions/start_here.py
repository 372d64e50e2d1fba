"""A first training run: a network learns to classify images, on any number of ranks.

Run it:  horovodrun -np 2 python start_here.py

This script is complete: there is nothing to do in it. How it works is what the lessons are about.
"""

import argparse

import horovod.tensorflow.keras as hvd
import tensorflow as tf
from horovod.tensorflow import broadcast_variables

from hvdcourse.training.callbacks import ReportMetrics
from hvdcourse import load
from hvdcourse.data.batches import without_tuner
from hvdcourse.training.models import wide_resnet


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="a data set, or a folder of images")
    parser.add_argument("--pixels", type=int, default=32, help="bring images to this size")
    parser.add_argument("--epochs", type=int, default=6, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=256, help="images a step, on all ranks")
    parser.add_argument("--seed", type=int, default=0, help="for the weights and the shuffling")
    return parser.parse_args()


def resized(images, pixels):
    """Return images of shape (count, height, width, channels) with this height and width."""
    if images.shape[1:3] == (pixels, pixels):
        return images
    return tf.image.resize(images, (pixels, pixels)).numpy()


def main():
    arguments = read_arguments()
    hvd.init()
    # On a machine with GPUs each rank has one of its own.
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    data = load(arguments.data)

    # Every rank takes its own share of the images, and of the batch. Shares of one length give
    # every rank the same number of steps: at most size - 1 images are left out.
    share = len(data.train_images) // hvd.size()
    mine = slice(hvd.rank() * share, (hvd.rank() + 1) * share)
    images = resized(data.train_images[mine], arguments.pixels)
    test_images = resized(data.test_images, arguments.pixels)
    dataset = tf.data.Dataset.from_tensor_slices((images, data.train_labels[mine]))
    dataset = dataset.shuffle(share, seed=arguments.seed)
    local_batch = arguments.batch_size // hvd.size()
    dataset = without_tuner(dataset.batch(local_batch, drop_remainder=True).prefetch(2))
    tests = tf.data.Dataset.from_tensor_slices((test_images, data.test_labels)).batch(360)

    tf.keras.utils.set_random_seed(arguments.seed)
    model = wide_resnet(images.shape[1:], len(data.classes))
    # In every step the ranks average their gradients before anyone changes a weight.
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.004))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    # All ranks start from the weights that rank 0 has drawn.
    broadcast_variables(model.variables, root_rank=0)

    history = model.fit(
        dataset,
        epochs=arguments.epochs,
        validation_data=without_tuner(tests),
        callbacks=[
            hvd.callbacks.MetricAverageCallback(),
            ReportMetrics(share // local_batch * local_batch * hvd.size()),
        ],
        verbose=0,
    )
    if hvd.rank() == 0:
        print(f"test accuracy {history.history['val_accuracy'][-1]:.3f}")


if __name__ == "__main__":
    main()
