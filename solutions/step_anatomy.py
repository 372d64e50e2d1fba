"""Train a deep, narrow network for a few steps, and leave a timeline of each gradient's way.

Run it:  HOROVOD_TIMELINE=/tmp/timeline.json horovodrun -np 2 python step_anatomy.py

Set HOROVOD_FUSION_THRESHOLD=0, and each gradient is sent by itself. With --late-rank 1, rank 1 is
late in every step. This script is complete: it is an experiment of lesson 5, not an exercise.
"""

import argparse
import os
import time

import horovod.tensorflow as hvd
import tensorflow as tf

from hvdcourse.timeline.events import add_passes


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=12, help="how many training steps to make")
    parser.add_argument("--layers", type=int, default=20, help="layers, and so gradients")
    parser.add_argument("--width", type=int, default=256, help="neurons in each layer")
    parser.add_argument("--batch-size", type=int, default=2048, help="samples a step, on each rank")
    parser.add_argument("--late-rank", type=int, help="the rank that is late; none without it")
    parser.add_argument("--late-ms", type=float, default=40, help="by how much it is late")
    return parser.parse_args()


def make_train_step(weights):
    """Return a function that makes one step, and returns when its passes began and ended."""

    @tf.function
    def train_step(samples):
        # A time is taken when its node runs: what must come later is made to wait for it.
        began = tf.timestamp()
        with tf.control_dependencies([began]):
            layer = tf.identity(samples)
        with tf.GradientTape() as tape:
            for weight in weights:
                layer = tf.nn.relu(layer @ weight)
            loss = tf.reduce_mean(layer**2)
        with tf.control_dependencies([loss]):
            turned = tf.timestamp()
        with tf.control_dependencies([turned]):
            seed = tf.identity(loss) * 0 + 1
        gradients = tape.gradient(loss, weights, output_gradients=seed)
        with tf.control_dependencies(gradients):
            ended = tf.timestamp()
        # DistributedGradientTape does the same; here each gradient gets a name that can be read.
        for number, (weight, gradient) in enumerate(zip(weights, gradients, strict=True), start=1):
            weight.assign_sub(0.01 * hvd.allreduce(gradient, name=f"layer_{number:02}"))
        return began, turned, ended

    return train_step


def main():
    arguments = read_arguments()
    # Horovod remembers its answers, and after the first step it would no longer note in the
    # timeline which rank was ready when.
    os.environ.setdefault("HOROVOD_CACHE_CAPACITY", "0")
    hvd.init()
    # On a machine with GPUs each rank has one of its own.
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    shape = (arguments.width, arguments.width)
    # He's scale, for layers with ReLU. All ranks draw the same weights.
    scale = (2 / arguments.width) ** 0.5
    weights = [
        tf.Variable(scale * tf.random.stateless_normal(shape, [number, 0]))
        for number in range(arguments.layers)
    ]
    samples = tf.random.normal((arguments.batch_size, arguments.width))
    train_step = make_train_step(weights)
    passes = []
    for _ in range(arguments.steps):
        if hvd.rank() == arguments.late_rank:
            time.sleep(arguments.late_ms / 1000)
        passes.append([float(moment) for moment in train_step(samples)])

    # Waits until the last event is written; shutdown alone can lose some.
    hvd.stop_timeline()
    first = hvd.rank() == 0
    hvd.shutdown()
    if first and (file := os.environ.get("HOROVOD_TIMELINE")):
        add_passes(file, passes)
        print(f"the timeline of {arguments.steps} steps is in {file}")


if __name__ == "__main__":
    main()
