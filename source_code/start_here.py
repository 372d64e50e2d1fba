"""A first training run: a small network learns to tell images apart, on any number of ranks.

Run it:  horovodrun -np 2 python start_here.py

This script is complete: there is nothing to do in it. How it works is what the lessons are about.
"""

import argparse

import horovod.tensorflow.keras as hvd
import tensorflow as tf
from horovod.tensorflow import broadcast_variables

from hvdcourse.training.callbacks import ReportMetrics
from hvdcourse import load
from hvdcourse.training.models import small_convnet


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="a data set, or a folder of images")
    parser.add_argument("--epochs", type=int, default=4, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=32, help="images a step, on all ranks")
    parser.add_argument("--seed", type=int, default=0, help="for the weights and the shuffling")
    return parser.parse_args()


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
    dataset = tf.data.Dataset.from_tensor_slices((data.train_images[mine], data.train_labels[mine]))
    dataset = dataset.shuffle(share, seed=arguments.seed)
    dataset = dataset.batch(arguments.batch_size // hvd.size(), drop_remainder=True).prefetch(2)

    model = small_convnet(data.train_images.shape[1:], len(data.classes), arguments.seed)
    # In every step the ranks average their gradients before anyone changes a weight.
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.05, momentum=0.9))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    # All ranks start from the weights that rank 0 has drawn.
    broadcast_variables(model.variables, root_rank=0)

    history = model.fit(
        dataset,
        epochs=arguments.epochs,
        validation_data=(data.test_images, data.test_labels),
        validation_batch_size=len(data.test_images),
        callbacks=[
            hvd.callbacks.MetricAverageCallback(),
            ReportMetrics(images_per_epoch=share * hvd.size()),
        ],
        verbose=0,
    )
    if hvd.rank() == 0:
        print(f"test accuracy {history.history['val_accuracy'][-1]:.3f}")


if __name__ == "__main__":
    main()
