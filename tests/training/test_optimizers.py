"""LAMB and NovoGrad: their formulas, by numpy and by another implementation, and their limits."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from optimizer_runs import (
    CASES,
    FEW,
    RATE,
    SHAPES,
    STEPS,
    assert_close,
    by_numpy,
    novograd_by_numpy,
    problem,
    recorded_problem,
    runs,
    sparse_problem,
    trained,
)

from hvdcourse.training.optimizers import LAMB, NovoGrad

# Made by record_addons.py.
ADDONS = json.loads(Path(__file__).with_name("addons.json").read_text())
BOTH = pytest.mark.parametrize("optimizer_class", [LAMB, NovoGrad])


def by_layer(optimizer):
    return optimizer.trust_ratios() if isinstance(optimizer, LAMB) else optimizer.second_moments()


@pytest.mark.parametrize(("optimizer_class", "options"), CASES)
def test_many_steps_are_those_of_the_paper(optimizer_class, options):
    problems = [problem(seed, SHAPES) for seed in (1, 2, 3)]
    optimizer = optimizer_class(RATE, **options)
    for (weights, gradients), values in zip(problems, runs(optimizer, problems), strict=True):
        expected, layers = by_numpy(optimizer_class, weights, gradients, options)
        assert_close(values, expected, 1e-12)
        assert_close(by_layer(optimizer), layers, 1e-12)


@BOTH
def test_steps_outside_a_graph_are_the_same(optimizer_class):
    weights, gradients = problem(4, SHAPES, steps=5)
    values = trained(optimizer_class(RATE), weights, gradients, compiled=False)
    assert_close(values, by_numpy(optimizer_class, weights, gradients, {})[0], 1e-12)


def test_novograd_leaves_excluded_variables_without_weight_decay():
    weights, gradients = problem(16)
    options = {"weight_decay": 0.0625, "exclude_from_weight_decay": ["bias"]}
    values = trained(NovoGrad(RATE, **options), weights, gradients)
    assert_close(values, novograd_by_numpy(weights, gradients, [RATE] * STEPS, options)[0], 1e-12)


@pytest.mark.parametrize("record", ADDONS, ids=lambda record: record["optimizer"])
def test_many_steps_are_those_that_tensorflow_addons_made(record):
    weights, gradients = recorded_problem(record["sparse"])
    optimizer_class = {"LAMB": LAMB, "NovoGrad": NovoGrad}[record["optimizer"]]
    optimizer = optimizer_class(RATE, **record["options"])
    values = trained(optimizer, weights, gradients, dtype="float32")
    assert_close(values, record["values"], 3e-5)


@pytest.mark.parametrize(("optimizer_class", "options"), [CASES[1], CASES[6], CASES[7]])
def test_a_sparse_gradient_is_the_dense_one_that_it_stands_for(optimizer_class, options):
    weights, sparse, dense = sparse_problem(8)
    values = trained(optimizer_class(RATE, **options), weights, sparse)
    expected, _ = by_numpy(optimizer_class, weights, dense, options)
    assert_close(values, expected, 1e-12)


@BOTH
def test_the_learning_rate_may_change_between_steps(optimizer_class):
    weights, gradients = problem(8)
    rates = [2.0 ** -(3 + step % 5) for step in range(STEPS)]
    expected, _ = by_numpy(optimizer_class, weights, gradients, {}, rates)
    values = trained(optimizer_class(1.0), weights, gradients, rates=rates)
    assert_close(values, expected, 1e-12)


@BOTH
def test_a_schedule_gives_each_step_its_learning_rate(optimizer_class):
    weights, gradients = problem(9)
    schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay([4, 9], [0.5, 0.25, 0.125])
    rates = [0.5] * 5 + [0.25] * 5 + [0.125] * (STEPS - 10)
    expected, _ = by_numpy(optimizer_class, weights, gradients, {}, rates)
    optimizer = optimizer_class.from_config(optimizer_class(schedule).get_config())
    assert_close(trained(optimizer, weights, gradients), expected, 1e-12)
    assert float(optimizer.learning_rate) == 0.125


@BOTH
@pytest.mark.parametrize(("dtype", "rtol"), [("float16", 0.02), ("bfloat16", 0.15)])
def test_16_bit_variables_are_updated_in_32_bits(optimizer_class, dtype, rtol):
    weights, gradients = problem(10)
    for gradient in gradients:
        gradient["dense/kernel"] *= (
            1e-5 / np.abs(gradient["dense/kernel"]).max()
        )  # squares underflow in 16
    rounded = [
        {name: np.float64(tf.cast(tf.constant(g), dtype)) for name, g in gradient.items()}
        for gradient in gradients
    ]
    optimizer = optimizer_class(RATE / 4)
    values = trained(optimizer, weights, gradients, dtype=dtype)
    expected, _ = by_numpy(optimizer_class, weights, rounded, {}, [RATE / 4] * STEPS)
    assert {value.dtype for value in optimizer.variables[1:]} <= {tf.float32, tf.int64}
    for name, value in values.items():
        np.testing.assert_allclose(np.float64(value), expected[name], rtol=rtol, atol=rtol)


@BOTH
@pytest.mark.parametrize("decay", [0.0, 0.0625])
def test_zero_gradients_leave_all_but_the_decay(optimizer_class, decay):
    weights, _ = problem(11)
    zeros = [{name: np.zeros(shape) for name, shape in FEW.items()}] * STEPS
    # With another beta_1 the decay adds up in NovoGrad's momentum.
    values = trained(optimizer_class(RATE, beta_1=0.0, weight_decay=decay), weights, zeros)
    factor = 1.0
    if decay:
        factor = (1 - RATE) if optimizer_class is LAMB else (1 - RATE * decay)
    assert_close(values, {name: x * factor**STEPS for name, x in weights.items()}, 1e-9)


@BOTH
def test_zero_weights_start_with_a_finite_step(optimizer_class):
    _, gradients = problem(12)
    weights = {name: np.zeros(shape) for name, shape in FEW.items()}
    optimizer = optimizer_class(RATE)
    values = trained(optimizer, weights, gradients)
    expected, _ = by_numpy(optimizer_class, weights, gradients, {})
    assert_close(values, expected, 1e-12)


def test_lamb_starts_with_a_step_of_adam_where_weights_are_zero():
    weights, gradients = {"kernel": np.zeros(3)}, [{"kernel": np.array([2.0, -3.0, 0.5])}]
    optimizer = LAMB(RATE)
    values = trained(optimizer, weights, gradients, compiled=False)
    assert_close(values, {"kernel": RATE * np.array([-1, 1, -1])}, 1e-5)
    assert optimizer.trust_ratios() == {"kernel": 1.0}


def test_novograd_starts_at_the_first_gradient_that_is_not_zero():
    weights, gradients = problem(13)
    late = [{name: np.zeros(shape) for name, shape in FEW.items()}] * 3 + gradients
    values = trained(NovoGrad(RATE), weights, late)
    expected, _ = novograd_by_numpy(weights, gradients, [RATE] * STEPS, {})
    assert_close(values, expected, 1e-12)


@BOTH
def test_a_layer_without_gradient_keeps_its_state(optimizer_class):
    weights, gradients = problem(14)
    rows = []
    for gradient in gradients:
        rows += [gradient, {**gradient, "dense/kernel": None}]
    both = trained(optimizer_class(RATE), weights, rows)
    expected, _ = by_numpy(optimizer_class, weights, gradients, {})
    np.testing.assert_allclose(both["dense/kernel"], expected["dense/kernel"], rtol=1e-12)


@BOTH
def test_xla_computes_the_same(optimizer_class):
    weights, gradients = problem(15)
    optimizer = optimizer_class(RATE, weight_decay=0.0625)
    optimizer.jit_compile = True
    expected, _ = by_numpy(optimizer_class, weights, gradients, {"weight_decay": 0.0625})
    assert_close(trained(optimizer, weights, gradients), expected, 1e-12)
