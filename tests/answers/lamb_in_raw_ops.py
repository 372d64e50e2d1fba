"""Right: all of it in update_step, in operations without a name of their own, and no helper."""

import argparse
import re

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import tensorflow as tf

from hvdcourse import record, report

RAW = tf.raw_ops

parser = argparse.ArgumentParser(description=__doc__)
for name in ("learning-rate", "beta-1", "beta-2", "epsilon", "weight-decay"):
    parser.add_argument(f"--{name}", type=float)
for name in ("updates", "seed"):
    parser.add_argument(f"--{name}", type=int)
parser.add_argument("--exclude", type=lambda text: text.split(","))
parser.add_argument("--units", type=lambda text: [int(one) for one in text.split(",")])


class RawLAMB(tf.keras.optimizers.Optimizer):
    """LAMB whose arguments are one dictionary."""

    def __init__(self, settings, learning_rate=1.0, name="RawLAMB", **others):
        super().__init__(name=name, **others)
        self.settings, self.slots = dict(settings), {}
        self._learning_rate = self._build_learning_rate(learning_rate)

    def build(self, var_list):
        super().build(var_list)
        for one in var_list[len(self.slots) :]:
            self.slots[one.ref()] = [self.add_variable(one.shape, name=key) for key in "mv"]

    def update_step(self, gradient, variable):
        s, x = self.settings, variable.read_value()
        m, v = self.slots[variable.ref()]
        m.assign_add(RAW.Mul(x=RAW.Sub(x=gradient, y=m), y=1 - s["beta_1"]))
        v.assign_sub(RAW.Mul(x=RAW.Sub(x=v, y=gradient * gradient), y=1 - s["beta_2"]))
        t = RAW.Cast(x=RAW.AddV2(x=self.iterations, y=1), DstT=tf.float32)
        left_m = RAW.Sub(x=1.0, y=RAW.Pow(x=s["beta_1"], y=t))
        left_v = RAW.Sub(x=1.0, y=RAW.Pow(x=s["beta_2"], y=t))
        below = RAW.AddV2(x=RAW.Mul(x=left_m, y=RAW.Sqrt(x=v / left_v)), y=s["epsilon"] * left_m)
        r = RAW.RealDiv(x=m, y=below)
        excluded = re.compile("|".join(f"(?:{one})" for one in s["exclude"])).search(variable.name)
        decay = 0.0 if excluded else s["weight_decay"]
        u = RAW.AddV2(x=r, y=RAW.Mul(x=decay, y=x))
        longest = [RAW.Sqrt(x=RAW.Sum(input=one * one, axis=range(len(x.shape)))) for one in (x, u)]
        ratio = 1.0
        if not excluded and longest[0] != 0 and longest[1] != 0:
            ratio = longest[0] / longest[1]
        made = {"m": m, "v": v, "r": r, "u": u, "ratio": ratio, "excluded": bool(excluded)}
        record("layer", {"name": variable.name, **made})
        variable.assign_sub(self.learning_rate * ratio * u)

    def get_config(self):
        return {
            **super().get_config(),
            "settings": dict(self.settings),
            "learning_rate": self._serialize_hyperparameter(self._learning_rate),
        }


def network(units):
    layers = [
        tf.keras.layers.Dense(n, "tanh", name=f"hidden_{i}") for i, n in enumerate(units[1:-1], 1)
    ]
    layers.append(tf.keras.layers.LayerNormalization(name="norm"))
    layers.append(tf.keras.layers.Dense(units[-1], kernel_initializer="zeros", name="head"))
    model = tf.keras.Sequential(layers)
    model.build((None, units[0]))
    return model


def main():
    arguments = parser.parse_args()
    hvd.init()
    tf.config.run_functions_eagerly(True)
    tf.keras.utils.set_random_seed(arguments.seed)
    for decay in (0.0, arguments.weight_decay):
        model = network(arguments.units)
        hvd.broadcast_variables(model.variables, root_rank=0)
        record("weights", {one.name: one for one in model.trainable_variables})
        names = ("beta_1", "beta_2", "epsilon", "exclude")
        settings = {name: getattr(arguments, name) for name in names} | {"weight_decay": decay}
        optimizer = hvd_keras.DistributedOptimizer(RawLAMB(settings, arguments.learning_rate))
        for _ in range(arguments.updates):
            x, y = np.random.randn(8, arguments.units[0]), np.random.randn(8, arguments.units[-1])
            with tf.GradientTape(persistent=True) as tape:
                loss = tf.reduce_mean((model(x) - y.astype("float32")) ** 2)
            variables = model.trainable_variables
            own = zip(variables, tape.gradient(loss, variables), strict=True)
            report("gradients", {one.name: gradient for one, gradient in own})
            optimizer.minimize(loss, variables, tape)
            record("weights", {one.name: one for one in variables})


if __name__ == "__main__":
    main()
