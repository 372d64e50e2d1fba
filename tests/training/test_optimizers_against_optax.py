"""LAMB and NovoGrad train random networks as another library's do, each with its own gradients."""

import itertools
import sys
from importlib import import_module

import numpy as np
import pytest
import tensorflow as tf
from optimizer_runs import RATE, assert_close

from hvdcourse.training.optimizers import LAMB, NovoGrad

LAMB_OPTIONS = [
    {},
    {"weight_decay": 0.0625, "beta_1": 0.5, "beta_2": 0.75, "epsilon": 0.125},
    {"weight_decay": 0.0625, "exclude_from_weight_decay": ["bias"]},
    {
        "weight_decay": 0.0625,
        "exclude_from_weight_decay": ["bias"],
        "exclude_from_layer_adaptation": ["kernel_0"],
    },
]
NOVOGRAD_OPTIONS = [
    {},
    {"weight_decay": 0.0625, "beta_1": 0.5, "beta_2": 0.25, "epsilon": 0.125},
    {"weight_decay": 0.0625, "exclude_from_weight_decay": ["bias"]},
]
CASES = [(LAMB, case) for case in LAMB_OPTIONS] + [(NovoGrad, case) for case in NOVOGRAD_OPTIONS]
STEPS = 20
sys.path.append(f"{sys.prefix}/oracle")  # see tools/setup.sh
jax, jnp, optax = map(import_module, ("jax", "jax.numpy", "optax"))
jax.config.update("jax_enable_x64", True)


def network(seed):
    """Return a random network's weights, and images and targets to train it with."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 9, size=random.integers(3, 6))
    weights = {}
    for layer, shape in enumerate(itertools.pairwise(sizes)):
        weights[f"kernel_{layer}"] = random.normal(size=shape)
        weights[f"bias_{layer}"] = random.normal(size=shape[1:])
    images = random.normal(size=(STEPS, 16, sizes[0]))
    return weights, images, random.normal(size=(STEPS, 16, sizes[-1]))


def loss_of(weights, images, targets, tanh, mean):
    """Return the mean squared error, computed by the library whose functions are given."""
    values = images
    for layer in range(len(weights) // 2):
        values = tanh(values @ weights[f"kernel_{layer}"] + weights[f"bias_{layer}"])
    return mean((values - targets) ** 2)


def trained_by_optax(optimizer, weights, images, targets):
    @jax.jit
    def step(weights, state, *batch):
        gradients = jax.grad(loss_of)(weights, *batch, jnp.tanh, jnp.mean)
        updates, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state

    weights = {name: jnp.asarray(value) for name, value in weights.items()}
    state = optimizer.init(weights)
    for batch in zip(images, targets, strict=True):
        weights, state = step(weights, state, *batch)
    return {name: np.asarray(value) for name, value in weights.items()}


def trained_here(optimizer, weights, images, targets):
    variables = {name: tf.Variable(value, name=name) for name, value in weights.items()}

    @tf.function
    def step(*batch):
        with tf.GradientTape() as tape:
            loss = loss_of(variables, *batch, tf.tanh, tf.reduce_mean)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients((gradients[name], variables[name]) for name in variables)

    for batch in zip(images, targets, strict=True):
        step(*map(tf.constant, batch))
    return {name: variable.numpy() for name, variable in variables.items()}


def of_optax(optimizer_class, names, options):
    """Return optax's optimizer with the same options."""
    betas = {"b1": options["beta_1"], "b2": options["beta_2"], "eps": options["epsilon"]}
    no_decay = options["exclude_from_weight_decay"]
    decayed = included(names, no_decay)
    if optimizer_class is NovoGrad:
        by_label = {
            chosen: optax.novograd(RATE, **betas, weight_decay=chosen * options["weight_decay"])
            for chosen in (True, False)
        }
        return optax.multi_transform(by_label, decayed)
    not_adapted = options["exclude_from_layer_adaptation"]
    adapted = included(names, no_decay if not_adapted is None else not_adapted)
    return optax.chain(
        optax.scale_by_adam(**betas),
        optax.add_decayed_weights(options["weight_decay"], decayed),
        optax.masked(optax.scale_by_trust_ratio(), adapted),
        optax.scale_by_learning_rate(RATE),
    )


def included(names, patterns):
    return {name: not any(pattern in name for pattern in patterns) for name in names}


@pytest.mark.parametrize(("optimizer_class", "options"), CASES)
def test_a_whole_training_ends_at_the_same_weights(optimizer_class, options):
    weights, images, targets = network(seed=1)
    optimizer = optimizer_class(RATE, **options)
    other = of_optax(optimizer_class, weights, optimizer.get_config())
    expected = trained_by_optax(other, weights, images, targets)
    assert_close(trained_here(optimizer, weights, images, targets), expected, 1e-9)
    # The training did something.
    assert np.abs(expected["kernel_0"] - weights["kernel_0"]).max() > 0.1
