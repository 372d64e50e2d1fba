"""Right: one function without state, in a graph, over pairs of moments that are one variable."""

import argparse
import functools
import re

import horovod.tensorflow.keras as hvd
import tensorflow as tf
from horovod.tensorflow import broadcast_variables

from hvdcourse import record


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("learning-rate", "beta-1", "beta-2", "epsilon", "weight-decay"):
        parser.add_argument(f"--{name}", type=float)
    parser.add_argument("--exclude")
    parser.add_argument("--units")
    parser.add_argument("--updates", type=int)
    parser.add_argument("--seed", type=int)
    return parser.parse_args()


def next_moments(pair, gradient, betas):
    betas = tf.reshape(betas, [2] + [1] * len(gradient.shape))
    return betas * pair + (1 - betas) * tf.stack([gradient, gradient**2])


def corrected(pair, t, betas):
    return tf.unstack([moment / (1 - beta**t) for moment, beta in zip(pair, betas, strict=True)])


def size_of(tensor):
    return tf.sqrt(tf.reduce_sum(tensor**2))


def ratio_of(weights, update):
    quotient = tf.math.divide_no_nan(size_of(weights), size_of(update))
    # A quotient of zero stands for either zero.
    return tf.cond(quotient > 0, lambda: quotient, lambda: tf.constant(1.0))


def lamb(pair, gradient, weights, t, betas, epsilon, decay):
    """Return the pair of moments, r, u and the ratio; a decay of None is that of the excluded."""
    pair = next_moments(pair, gradient, betas)
    mean, mean_square = corrected([pair[0], pair[1]], t, betas)
    r = mean / (mean_square**0.5 + epsilon)
    if decay is None:
        return pair, r, r, tf.constant(1.0)
    u = r + decay * weights
    return pair, r, u, ratio_of(weights, u)


class LAMB(tf.keras.optimizers.Optimizer):
    def __init__(self, learning_rate, betas, epsilon, decay, patterns, name="LAMB", **others):
        super().__init__(name, **others)
        self._learning_rate = self._build_learning_rate(learning_rate)
        self.betas, self.epsilon, self.decay, self.patterns = betas, epsilon, decay, patterns

    def get_config(self):
        names = ("betas", "epsilon", "decay", "patterns")
        config = {name: getattr(self, name) for name in names}
        rate = self._serialize_hyperparameter(self._learning_rate)
        return {**super().get_config(), **config, "learning_rate": rate}

    def build(self, var_list):
        super().build(var_list)
        if not hasattr(self, "pairs"):
            self.pairs = [self.add_variable([2, *one.shape], name="pair") for one in var_list]

    def update_step(self, gradient, variable):
        pair = self.pairs[self._index_dict[self._var_key(variable)]]
        excluded = re.search(self.patterns, variable.name) is not None
        moments, r, u, ratio = lamb(
            pair.read_value(), gradient, variable.read_value(),
            tf.cast(self.iterations, tf.float32) + 1,
            self.betas, self.epsilon, None if excluded else self.decay,
        )  # fmt: skip
        pair.assign(moments)
        take_note = functools.partial(note_layer, variable.name, excluded)
        tf.numpy_function(take_note, [moments[0], moments[1], r, u, ratio], [])
        variable.assign_add(-self.learning_rate * ratio * u)


def note_layer(name, excluded, m, v, r, u, ratio):
    note = {"m": m, "v": v, "r": r, "u": u, "ratio": ratio}
    record("layer", {"name": name, "excluded": excluded, **note})


def by_name(variables, values):
    return {one.name: value for one, value in zip(variables, values, strict=True)}


def train(arguments, decay):
    units = [int(number) for number in arguments.units.split(",")]
    dense = tf.keras.layers.Dense
    hidden = [
        dense(n, "tanh", name=f"hidden_{k}") for k, n in enumerate(units) if 0 < k < len(units) - 1
    ]
    norm = tf.keras.layers.LayerNormalization(name="norm")
    head = dense(units[-1], kernel_initializer="zeros", name="head")
    model = tf.keras.Sequential([tf.keras.Input(units[:1]), *hidden, norm, head])
    variables = model.trainable_variables
    optimizer = hvd.DistributedOptimizer(
        LAMB(
            arguments.learning_rate,
            [arguments.beta_1, arguments.beta_2],
            arguments.epsilon,
            decay,
            arguments.exclude.replace(",", "|"),
            jit_compile=False,
        )
    )
    optimizer.build(variables)
    broadcast_variables(variables, root_rank=0)

    @tf.function
    def step():
        inputs, targets = tf.random.normal([9, units[0]]), tf.random.normal([9, units[-1]])
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_sum(tf.abs(model(inputs) - targets))
        own = tape.gradient(loss, variables)
        optimizer.minimize(loss, variables, tape)
        return own

    record("weights", by_name(variables, variables))
    for _ in range(arguments.updates):
        record("gradients", by_name(variables, step()))
        record("weights", by_name(variables, variables))


def main():
    arguments = read_arguments()
    hvd.init()
    tf.keras.utils.set_random_seed(arguments.seed)
    train(arguments, 0.0)
    train(arguments, arguments.weight_decay)


if __name__ == "__main__":
    main()
