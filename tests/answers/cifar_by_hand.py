"""Right: a normalization, a schedule and a LAMB of its own."""

import argparse

import horovod.tensorflow.keras as hvd
import tensorflow as tf
from horovod.tensorflow import broadcast_variables

from hvdcourse import load
from hvdcourse.data.shards import shard

layers = tf.keras.layers


def read_arguments():
    kinds = {"data": str, "images": int, "epochs": int, "batch-size": int, "learning-rate": float}
    kinds |= {"lamb-learning-rate": float, "warmup-epochs": int, "seed": int, "weights-seed": int}
    parser = argparse.ArgumentParser()
    for name, kind in kinds.items():
        parser.add_argument(f"--{name}", type=kind)
    parser.set_defaults(data="digits")
    return parser.parse_args()


class Normalize(layers.Layer):
    """Divides by the batch's deviation, and remembers with a memory that grows to ten steps."""

    def build(self, shape):
        size = shape[-1:]
        self.shift = self.add_weight("shift", size, initializer="zeros")
        self.mean = self.add_weight("mean", size, initializer="zeros", trainable=False)
        self.square = self.add_weight("square", size, initializer="ones", trainable=False)
        self.seen = self.add_weight("seen", (), initializer="zeros", trainable=False)

    def call(self, x, training=False):
        if not training:
            return self.standard(x, self.mean, self.square)
        axes = list(range(len(x.shape) - 1))
        mean, square = tf.reduce_mean(x, axes), tf.reduce_mean(x * x, axes)
        part = 1 / tf.minimum(self.seen.assign_add(1.0), 10.0)
        self.mean.assign_add(part * (mean - self.mean))
        self.square.assign_add(part * (square - self.square))
        return self.standard(x, mean, square)

    def standard(self, x, mean, square):
        return (x - mean) * tf.math.rsqrt(square - mean * mean + 1e-3) + self.shift


def network(shape, classes):
    images = layers.Input(shape)
    x = layers.Conv2D(16, 3, padding="same", kernel_initializer="he_normal")(images)
    for _ in range(2):
        inner = layers.Conv2D(16, 3, padding="same")(layers.ReLU()(Normalize()(x)))
        x += layers.Conv2D(16, 3, padding="same")(layers.ReLU()(Normalize()(inner)))
    x = layers.Flatten()(layers.ReLU()(Normalize()(x)))
    return tf.keras.Model(images, layers.Dense(classes)(x))


@tf.keras.utils.register_keras_serializable()
class Rate(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, single, size, steps, warm, epochs):
        self.given = {
            "single": single, "size": size, "steps": steps, "warm": warm, "epochs": epochs
        }  # fmt: skip

    def get_config(self):
        return self.given

    def __call__(self, step):
        given, step = self.given, tf.cast(step, tf.float32)
        progress = tf.minimum(1.0, (step + 1) / (given["warm"] * given["steps"]))
        late = step >= given["epochs"] * given["steps"] / 2
        rate = given["single"] * (1 + (given["size"] - 1) * progress)
        return rate * tf.where(late, 0.1, 1.0)


class Layered(tf.keras.optimizers.Optimizer):
    def __init__(self, learning_rate, name="layered"):
        super().__init__(name=name)
        self._learning_rate = self._build_learning_rate(learning_rate)

    def get_config(self):
        rate = self._serialize_hyperparameter(self._learning_rate)
        return {"learning_rate": rate, "name": self.name}

    def build(self, variables):
        super().build(variables)
        if not hasattr(self, "first"):
            self.first = [self.add_variable_from_reference(one, "first") for one in variables]
            self.second = [self.add_variable_from_reference(one, "second") for one in variables]

    def update_step(self, gradient, variable):
        number = self._index_dict[self._var_key(variable)]
        first, second = self.first[number], self.second[number]
        step = tf.cast(self.iterations + 1, tf.float32)
        first.assign(0.9 * first + 0.1 * gradient)
        second.assign(0.999 * second + 0.001 * gradient**2)
        root = tf.sqrt(second / (1 - 0.999**step))
        change = first / (1 - 0.9**step) / (root + 1e-7)
        if len(variable.shape) > 1:
            change *= tf.norm(variable) / tf.norm(change)
        variable.assign_sub(self.learning_rate * change)


def main():
    arguments = read_arguments()
    hvd.init()
    data = load(arguments.data)
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
    tf.keras.utils.set_random_seed(int(arguments.weights_seed))
    model = network(images.shape[1:], len(data.classes))
    mine = shard(len(images), hvd.rank(), hvd.size())[: len(images) // hvd.size()]
    steps = -(-len(mine) // arguments.batch_size)
    rate = Rate(
        arguments.lamb_learning_rate, hvd.size(), steps, arguments.warmup_epochs, arguments.epochs
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(hvd.DistributedOptimizer(Layered(rate)), loss)
    broadcast_variables(model.variables, root_rank=0)
    model.fit(images[mine], labels[mine], arguments.batch_size, arguments.epochs, verbose=0)


if __name__ == "__main__":
    main()
