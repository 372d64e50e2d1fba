"""LAMB, written from its paper: Adam, with steps in proportion to each layer's weights.

Run it:    horovodrun -np 2 python lamb.py
Check it:  hvdcourse check lamb

Algorithm 2 of You et al., arXiv:1904.00962. A layer is one variable: a kernel, or a bias. For its
weights x, its gradient g, and its update number t = 1, 2, 3, …

    m ← β₁ m + (1 − β₁) g                         moments; both are zero at first
    v ← β₂ v + (1 − β₂) g²
    r = m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + ε)    direction, with both moments corrected
    u = r + λ x                                   weight decay
    x ← x − η (‖x‖ / ‖u‖) u                       trust ratio ‖x‖ / ‖u‖

so that ‖Δx‖ = η ‖x‖, however large the gradient is. For layers that are excluded by name, as biases
often are, u = r, and the ratio is 1. Until the steps are done, this is plain gradient descent.

`record(name, value)` and `observe` let the check see a value. Leave their lines where they are.
"""

import argparse
import re

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow import broadcast_variables

from hvdcourse import record


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learning-rate", type=float, default=0.05, help="η")
    parser.add_argument("--beta-1", type=float, default=0.9, help="β₁")
    parser.add_argument("--beta-2", type=float, default=0.99, help="β₂")
    parser.add_argument("--epsilon", type=float, default=1e-6, help="ε")
    parser.add_argument("--weight-decay", type=float, default=0.1, help="λ, of the second training")
    parser.add_argument("--exclude", default="bias,gamma,beta", help="patterns, commas between")
    parser.add_argument("--units", default="6,5,4,3", help="of the input and of each layer")
    parser.add_argument("--updates", type=int, default=20, help="of each training")
    parser.add_argument("--seed", type=int, help="of weights and samples; random without it")
    return parser.parse_args()


def trust_ratio(x, u):
    """Return what the update u of the weights x is multiplied by, apart from the learning rate."""
    # TODO: Step 4: The ratio makes u as long as x is. Zeros have no length to go by: where x or u
    # is zero, the ratio is 1. Weights that start at zero could not move otherwise.
    return 1.0


class LAMB(tf.keras.optimizers.Optimizer):
    """The optimizer. `exclude` has patterns: regular expressions for the names of layers."""

    def __init__(
        self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-6, weight_decay=0.0,
        exclude=(), name="LAMB", **keras_arguments,
    ):  # fmt: skip
        # Keras must not see the weight decay: its own is not multiplied by the trust ratio.
        super().__init__(name=name, weight_decay=None, **keras_arguments)
        self._learning_rate = self._build_learning_rate(learning_rate)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.decay, self.exclude = weight_decay, list(exclude)

    def get_config(self):
        """Return every argument: Horovod's DistributedOptimizer is a copy that is made of these.

        What is missing here has its default value there, and nothing says so.
        """
        return {
            **super().get_config(),
            "learning_rate": self._serialize_hyperparameter(self._learning_rate),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "weight_decay": self.decay,
            "exclude": list(self.exclude),
        }

    def build(self, variables):
        """Make m and v of all layers, zeros at first; Keras calls it before the first update."""
        super().build(variables)
        if getattr(self, "_built", False):
            return
        self.m = [self.add_variable_from_reference(one, "m") for one in variables]
        self.v = [self.add_variable_from_reference(one, "v") for one in variables]
        self._built = True

    def excludes(self, name):
        """Return whether the layer of this name, such as "dense/bias:0", is excluded."""
        # TODO: Step 5: A layer is excluded if any of the patterns fits any part of its name.
        return False

    def update_step(self, gradient, variable):
        """Update one layer; Keras calls it for each layer in each update."""
        index = self._index_dict[self._var_key(variable)]
        m, v = self.m[index], self.v[index]
        g, x = tf.convert_to_tensor(gradient), tf.convert_to_tensor(variable)
        # Keras counts the updates that are done; this one is not.
        t = tf.cast(self.iterations + 1, x.dtype)

        # Step 1: m and v are running means, of g and of g². The old mean's share is β₁ in m, and β₂
        # in v; the new gradient has the rest. m and v are TensorFlow variables, which their method
        # assign changes.
        m.assign(self.beta_1 * m + (1 - self.beta_1) * g)
        v.assign(self.beta_2 * v + (1 - self.beta_2) * tf.square(g))

        # Step 2: r is Adam's direction. m and v started at zero, so that they are too small by
        # 1 − β₁ᵗ and 1 − β₂ᵗ; r is made of both as they would be without that. ε is added
        # outside of the root.
        # Without it, the first r for β₁ = 0.9 and β₂ = 0.999 would be 0.1 / √0.001 times as long.
        m_hat = m / (1 - self.beta_1**t)
        v_hat = v / (1 - self.beta_2**t)
        r = m_hat / (tf.sqrt(v_hat) + self.epsilon)

        excluded = bool(self.excludes(variable.name))
        u, ratio = r, 1.0
        if not excluded:
            # TODO: Step 3: The decay, λ x, is part of u. It never was in g, nor in the moments.
            u = r
            ratio = trust_ratio(x, u)

        self.observe(variable.name, m=m, v=v, r=r, u=u, ratio=ratio, excluded=excluded)
        variable.assign(x - tf.cast(self.learning_rate, x.dtype) * ratio * u)

    def observe(self, name, **values):
        """Do nothing: a subclass may look at what was made in the update of a layer."""


class ObservedLAMB(LAMB):
    """LAMB that lets the check see each update of each layer."""

    def observe(self, name, **values):
        record("layer", {"name": name, **values})


def make_model(units):
    """Return a network whose last layer starts at zero, so that no gradient gets past it at first.

    Its first update has what is special: weights of zero, and gradients of zero.
    """
    count, *hidden, classes = units
    dense = [
        tf.keras.layers.Dense(width, "tanh", name=f"hidden_{number}")
        for number, width in enumerate(hidden, start=1)
    ]
    norm = tf.keras.layers.LayerNormalization(name="norm")
    head = tf.keras.layers.Dense(classes, kernel_initializer="zeros", name="head")
    return tf.keras.Sequential([tf.keras.Input((count,)), *dense, norm, head])


def train(arguments, weight_decay, generator):
    """Train a new model on random samples, and let the check see gradients and weights."""
    units = [int(number) for number in arguments.units.split(",")]
    model = make_model(units)
    variables = model.trainable_variables
    broadcast_variables(variables, root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        ObservedLAMB(
            arguments.learning_rate,
            arguments.beta_1,
            arguments.beta_2,
            arguments.epsilon,
            weight_decay,
            arguments.exclude.split(","),
        )
    )
    record("weights", {one.name: one for one in variables})
    inputs = generator.normal(size=(16, units[0])).astype(np.float32)
    targets = generator.normal(size=(16, units[-1])).astype(np.float32)
    for _ in range(arguments.updates):
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean(tf.square(model(inputs) - targets))
        own = tape.gradient(loss, variables)
        record("gradients", {one.name: mine for one, mine in zip(variables, own, strict=True)})
        # minimize, and not apply_gradients: it is here that Horovod takes the mean of all ranks.
        optimizer.minimize(loss, variables, tape)
        record("weights", {one.name: one for one in variables})
    print(f"weight decay {weight_decay}: loss {float(loss):.4f}", flush=True)


def main():
    arguments = read_arguments()
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    # Without graphs, `observe` sees numbers.
    tf.config.run_functions_eagerly(True)
    if arguments.seed is not None:
        tf.keras.utils.set_random_seed(arguments.seed)
    # Every rank draws samples of its own.
    generator = np.random.default_rng(arguments.seed)
    for weight_decay in (0.0, arguments.weight_decay):
        train(arguments, weight_decay, generator)


if __name__ == "__main__":
    main()
