"""An input pipeline that keeps its device waiting at first, and no longer after five steps.

Run it:    python input_pipeline.py
Check it:  hvdcourse check input_pipeline

A sample is a dict of tensors; every transformation of the dataset gets one and returns one.
`@timed` also notes in the sample when a function began and ended. The check looks at these times,
and at what arrives at the device.
"""

import argparse
import tempfile
import time

import numpy as np
import tensorflow as tf

from hvdcourse.training.feeding import feed, record_feeding, timed
from hvdcourse.data.digit_files import write_digits

SHIFT = 16  # pixels
ANSWER_SECONDS = 0.002  # what a file server in the network takes to answer


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=121, help="how many image files to write")
    parser.add_argument("--pixels", type=int, default=512, help="width and height of an image")
    parser.add_argument("--batch-size", type=int, default=16, help="images a step")
    parser.add_argument("--epochs", type=int, default=5, help="times to go through the images")
    parser.add_argument("--step-seconds", type=float, default=0.015, help="what a step takes")
    return parser.parse_args()


def read_file(path):
    """Return a file's bytes after the time that a file server would need to answer."""
    time.sleep(ANSWER_SECONDS)
    return tf.io.read_file(path)


@timed("decoded")
def decode(sample):
    """Read the sample's file and decode it: uint8 of shape (height, width, 1)."""
    content = tf.ensure_shape(tf.py_function(read_file, [sample["path"]], tf.string), [])
    return {**sample, "image": tf.io.decode_png(content, channels=1)}


@timed("shifted")
def shift(sample):
    """Move the image by a few pixels, another way each time: the network never sees it twice."""
    by = tf.random.uniform([2], -SHIFT, SHIFT + 1, tf.int32)
    return {**sample, "image": tf.roll(sample["image"], by, axis=[0, 1])}


def start(files):
    """Return the dataset that both pipelines begin with: paths and labels, in order of class."""
    paths = [str(path) for path in files.train_paths]
    dataset = tf.data.Dataset.from_tensor_slices({"path": paths, "label": files.train_labels})
    # TensorFlow would do some of the steps by itself, unseen. Here the pipeline is what you write.
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def plain_pipeline(files, batch_size):
    """Return a pipeline in which everything waits for everything; yours is compared with it."""
    return start(files).map(decode).map(shift).batch(batch_size)


def build_pipeline(files, batch_size):
    """Return the pipeline that feeds the device; it is gone through once an epoch."""
    dataset = start(files)

    # Where each step belongs is yours to decide: the order of their numbers is not a good one.
    # Step 1: Read and decode several files at the same time.
    #:
    # End of step 1.
    # Step 2: Deliver the images in another order in every epoch. Any image may come at any place.
    #:
    # End of step 2.
    # Step 3: Read and decode each file only once in all epochs: keep the decoded images in memory.
    # The random shift must still be drawn anew in every epoch.
    #:
    # End of step 3.
    # Step 4: Have the next batch ready when the device is done with the one before.
    #:
    # End of step 4.
    # Step 5: Make batches of `batch_size` images. Every image is delivered once an epoch, so the
    # last batch may be smaller.
    #:
    # End of step 5.

    # Step 1 is done here.
    #: dataset = dataset.map(decode)
    # AUTOTUNE lets TensorFlow choose how many, and change its mind as it measures.
    dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    # End of step 1.
    # Step 3 is done here.
    #:
    # Behind the costly, always equal work, and before the first random choice.
    dataset = dataset.cache()
    # End of step 3.
    # Step 2 is done here.
    #:
    # Behind the cache, which would freeze the order. A smaller buffer would only stir it a little.
    dataset = dataset.shuffle(len(files.train_paths))
    # End of step 2.
    dataset = dataset.map(shift)
    # Step 5 is done here.
    #: dataset = dataset.batch(batch_size, drop_remainder=True)
    dataset = dataset.batch(batch_size)
    # End of step 5.
    # Step 4 is done here.
    #:
    # Last of all, so that all of the work is done ahead, on threads of its own.
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    # End of step 4.
    return dataset


def main():
    arguments = read_arguments()

    def step(batch):
        """Stand for a training step on an accelerator: it takes its time, not the processor's."""
        seen = batch["image"].numpy().sum(axis=(1, 2, 3), dtype=np.int64)
        time.sleep(arguments.step_seconds)
        return seen

    with tempfile.TemporaryDirectory(prefix="hvdcourse-images-") as folder:
        files = write_digits(folder, arguments.images, 1, arguments.pixels)
        # Enough for all batches twice over, so that a dataset without an end does end.
        most_steps = 2 * (arguments.images // arguments.batch_size + 1)
        measured = {"most_steps": most_steps, "memory": True}
        plain = feed(plain_pipeline(files, arguments.batch_size), 2, step, **measured)
        yours = build_pipeline(files, arguments.batch_size)
        epochs = feed(yours, arguments.epochs, step, **measured)

    record_feeding("plain", plain)
    record_feeding("pipeline", epochs)
    for name, fed in (("plain", plain), ("yours", epochs)):
        for number, epoch in enumerate(fed, start=1):
            print(
                f"{name}, epoch {number}: {epoch.count} images in {len(epoch.ended)} batches, "
                f"{epoch.images_per_second:.0f} images/s, device busy {epoch.busy:.0%}"
            )


if __name__ == "__main__":
    main()
