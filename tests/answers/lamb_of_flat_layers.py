"""Right: flat layers in 64 bits with counters of their own, in another order."""

import argparse
import re

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import tensorflow as tf

from hvdcourse import record


class Layer(tf.Module):
    """What LAMB knows of one layer, and its update, with numbers of 64 bits."""

    def __init__(self, optimizer, variable):
        super().__init__()
        self.variable, self.settings = variable, optimizer.settings
        length = int(np.prod(variable.shape))
        self.mean, self.power = (
            optimizer.add_variable([length], tf.float64, name=name) for name in ("mean", "power")
        )
        # What is left of the start at zero: βᵗ, one factor an update.
        self.left = optimizer.add_variable([2], tf.float64, initializer="ones", name="left")
        self.free = any(re.search(one, variable.name) for one in self.settings["exclude"])

    def update(self, gradient, rate):
        s = self.settings
        shape = gradient.shape
        flat = tf.reshape(tf.cast(gradient, tf.float64), [-1])
        x = tf.reshape(tf.cast(self.variable.value(), tf.float64), [-1])
        self.left.assign(self.left * [s["beta_1"], s["beta_2"]])
        self.mean.assign(flat + s["beta_1"] * (self.mean - flat))
        self.power.assign(flat**2 + s["beta_2"] * (self.power - flat**2))
        mean, power = self.mean / (1 - self.left[0]), self.power / (1 - self.left[1])
        r = u = mean / (tf.sqrt(power) + s["epsilon"])
        ratio = 1.0
        if not self.free:
            u = r + s["weight_decay"] * x
            long = float(tf.norm(x)), float(tf.norm(u))
            ratio = long[0] / long[1] if min(long) > 0 else ratio
        step = tf.reshape(rate * ratio * u, shape)
        made = {"m": self.mean, "v": self.power, "r": r, "u": u}
        made = {name: tf.reshape(value, shape) for name, value in made.items()}
        record(
            "layer", {"name": self.variable.name, "ratio": [ratio], "excluded": self.free, **made}
        )
        self.variable.assign_sub(tf.cast(step, self.variable.dtype))


class FlatLAMB(tf.keras.optimizers.Optimizer):
    def __init__(self, name="FlatLAMB", learning_rate=0.0, settings=None, **others):
        super().__init__(name, **others)
        self._learning_rate, self.settings = self._build_learning_rate(learning_rate), settings
        self.layers = {}

    def build(self, var_list):
        super().build(var_list)
        for variable in var_list:
            self.layers.setdefault(variable.name, None)
            self.layers[variable.name] = self.layers[variable.name] or Layer(self, variable)

    def update_step(self, gradient, variable):
        self.layers[variable.name].update(gradient, float(self.learning_rate))

    def get_config(self):
        rate = float(self.learning_rate)
        return super().get_config() | {"learning_rate": rate, "settings": self.settings}


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("learning-rate", "beta-1", "beta-2", "epsilon", "weight-decay"):
        parser.add_argument(f"--{name}", type=float)
    for name in ("exclude", "units"):
        parser.add_argument(f"--{name}", type=str)
    for name in ("updates", "seed"):
        parser.add_argument(f"--{name}", type=int)
    return vars(parser.parse_args())


def build_model(count, *widths):
    inputs = hidden = tf.keras.Input([count])
    for number, width in enumerate(widths[:-1], start=1):
        hidden = tf.keras.layers.Dense(width, activation="selu", name=f"hidden_{number}")(hidden)
    hidden = tf.keras.layers.LayerNormalization(name="norm")(hidden)
    head = tf.keras.layers.Dense(widths[-1], kernel_initializer="zeros", name="head")
    return tf.keras.Model(inputs, head(hidden))


def named(variables, values):
    return {
        variable.name: np.array(value) for variable, value in zip(variables, values, strict=True)
    }


def main():
    hvd.init()
    arguments = read_arguments()
    tf.keras.utils.set_random_seed(arguments["seed"])
    units = [int(number) for number in arguments["units"].split(",")]
    exclude = arguments["exclude"].split(",")
    for decay in (0, arguments["weight_decay"]):
        model = build_model(*units)
        variables = model.trainable_variables[::-1]
        model.set_weights(hvd.broadcast_object(model.get_weights(), root_rank=0))
        settings = arguments | {"weight_decay": decay, "exclude": exclude}
        rate = arguments["learning_rate"]
        plain = FlatLAMB(learning_rate=rate, settings=settings, jit_compile=False)
        optimizer = hvd_keras.DistributedOptimizer(plain, num_groups=1)
        record("weights", named(variables, variables))
        for _ in range(arguments["updates"]):
            x = tf.random.normal([12, units[0]])
            with tf.GradientTape(persistent=True) as tape:
                loss = tf.reduce_mean(tf.math.softplus(model(x)))
            record("gradients", named(variables, tape.gradient(loss, variables)))
            pairs = optimizer.compute_gradients(loss, variables, tape)
            optimizer.apply_gradients(pairs)
            record("weights", named(variables, variables))


if __name__ == "__main__":
    main()
