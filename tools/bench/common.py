"""What the forms of the benchmark have in common: arguments, images, loss and the measuring."""

import argparse
import time

import numpy as np
import psutil
import tensorflow as tf

from hvdcourse.rank.reports import record, report_metrics


def read_arguments(description):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--images", required=True, help="an .npz file with images and labels")
    parser.add_argument("--batch-size", type=int, default=256, help="images a step, on all ranks")
    parser.add_argument("--epochs", type=int, default=2, help="the first one is a warm-up")
    parser.add_argument("--bfloat16", action="store_true", help="compute in bfloat16")
    parser.add_argument("--no-allreduce", action="store_true", help="let each rank train alone")
    parser.add_argument("--ports", default="", help="where TensorFlow's own workers listen")
    arguments = parser.parse_args()
    if arguments.bfloat16:
        # Weights and what is sent stay float32.
        tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    return arguments


def read_images(path):
    """Return images as uint8 of shape (count, 32, 32, 3) and labels of shape (count,)."""
    with np.load(path) as file:
        return file["images"], file["labels"]


def cross_entropy():
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def keep_sizes(model):
    """Leave the norm of every weight, by which a test sees that the ranks have trained alike."""
    record("norms of the weights", [tf.norm(weight) for weight in model.trainable_variables])


class Meter(tf.keras.callbacks.Callback):
    """Reports of each epoch its images per second, and the processor time that it took."""

    def __init__(self, images, epochs):
        super().__init__()
        self.images, self.epochs = images, epochs

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.perf_counter(), time.process_time(), machine_seconds()

    def on_epoch_end(self, epoch, logs=None):
        now = time.perf_counter(), time.process_time(), machine_seconds()
        seconds, ours, machine = (end - begin for end, begin in zip(now, self.began, strict=True))
        report_metrics(
            epoch=epoch + 1,
            epochs=self.epochs,
            images_per_second=self.images / seconds,
            seconds=seconds,
            core_seconds=ours,
            machine_core_seconds=machine,
            done=True,
        )


def machine_seconds():
    """Return how long the machine's cores have worked, for this and for other programs."""
    times = psutil.cpu_times()
    return times.user + times.nice + times.system + times.irq + times.softirq + times.steal
