"""Times training steps of one GPU: against the batch size, and in two precisions."""

import argparse
import time
from functools import partial

import numpy as np
import tensorflow as tf

from hvdcourse.rank.reports import record
from hvdcourse.study.device import time_batches
from hvdcourse.study.turns import in_turns
from hvdcourse.training.models import small_convnet

STEPS = 5  # timed together
# By name, Keras's policy. With the first, TensorFlow lets a GPU round factors to 19 bits (TF32).
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--largest", type=int, default=13, help="the largest batch, as a power of 2"
    )
    parser.add_argument("--images", type=int, default=256, help="a step of ResNet-50")
    parser.add_argument("--turns", type=int, default=10, help="how often each case is timed")
    return parser.parse_args()


def train_step_of(model, mean=lambda gradients: gradients):
    """Return the function that trains the model on one batch and returns the loss."""
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function(reduce_retracing=True)
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, tf.cast(model(images, training=True), tf.float32))
        gradients = mean(tape.gradient(loss, model.trainable_variables))
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return train_step


def seconds_of_step(train_step, batch):
    """Return the seconds of one step, as the mean of a few."""
    began = time.perf_counter()
    for _ in range(STEPS):
        loss = train_step(*batch)
    loss.numpy()  # waits until the device is done
    return (time.perf_counter() - began) / STEPS


def resnet_step(policy, batch):
    """Return what times the training step of a new ResNet-50 with this policy."""
    tf.keras.mixed_precision.set_global_policy(policy)
    model = tf.keras.applications.ResNet50(weights=None, classifier_activation=None)
    seconds = partial(seconds_of_step, train_step_of(model), batch)
    seconds()  # builds the graph, and lets the library choose its algorithms
    return seconds


def main():
    arguments = read_arguments()
    random = np.random.default_rng(0)
    sizes = [2**power for power in range(arguments.largest + 1)]
    images = random.random((sizes[-1], 32, 32, 3), np.float32)
    labels = random.integers(0, 10, len(images))
    small = train_step_of(small_convnet(images.shape[1:], 10, seed=0))
    record("batch sizes", time_batches(small, images, labels, sizes, arguments.turns))

    batch = tf.random.uniform((arguments.images, 224, 224, 3)), tf.range(arguments.images)
    cases = {name: resnet_step(policy, batch) for name, policy in POLICIES.items()}
    record("ResNet-50", in_turns(cases, arguments.turns))


if __name__ == "__main__":
    main()
