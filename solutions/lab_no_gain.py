"""Lab 5: two ranks make as many steps as one, and learn exactly as much as one.

Run it:    horovodrun -np 2 python lab_no_gain.py --epochs 4
Check it:  hvdcourse check lab_no_gain

First run it on one rank: -np 1 with --epochs 2 makes as many steps as -np 2 with --epochs 4. What
should the second rank add? Guess, then compare what is printed after the same number of steps,
and what each rank prints. The loss falls, and there is no error. Find the cause, and repair it.
"""

import argparse

import horovod.tensorflow.keras as hvd
import tensorflow as tf

from hvdcourse import load
from hvdcourse.training.models import small_convnet

# Step 1: In every step each rank contributes something that the others do not.
#:
# End of step 1.


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, help="train on this many images; on all without it")
    parser.add_argument("--epochs", type=int, default=4, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=32, help="images a step, on each rank")
    return parser.parse_args()


def train_set(images, labels, batch_size):
    """Return this rank's batches, without an end."""
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    # Step 1 is done here.
    #:
    # All ranks have the same seed, so they all shuffle in the same order. It does no harm now: each
    # rank shuffles a share of its own. A seed for each rank would help, too; then ranks draw some
    # of the same images, by chance.
    dataset = dataset.shard(hvd.size(), hvd.rank())
    # End of step 1.
    return dataset.repeat().shuffle(len(images)).batch(batch_size)


def main():
    arguments = read_arguments()
    hvd.init()
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    # A run can be repeated: the first weights and the order of the images are the same each time.
    tf.random.set_seed(1)
    data = load("digits")
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
    model = small_convnet(images.shape[1:], len(data.classes), seed=0)
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.02, momentum=0.9))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    # The ranks share the work of an epoch.
    steps = len(images) // (arguments.batch_size * hvd.size())

    def print_epoch(epoch, logs):
        print(
            f"after {steps * (epoch + 1)} steps: loss {logs['loss']:.4f} on my batches, "
            f"test accuracy {logs['val_accuracy']:.4f}",
            flush=True,
        )

    model.fit(
        train_set(images, labels, arguments.batch_size),
        epochs=arguments.epochs,
        steps_per_epoch=steps,
        validation_data=(data.test_images, data.test_labels),
        validation_batch_size=256,
        callbacks=[
            hvd.callbacks.BroadcastGlobalVariablesCallback(0),
            tf.keras.callbacks.LambdaCallback(on_epoch_end=print_epoch),
        ],
        verbose=0,
    )


if __name__ == "__main__":
    main()
