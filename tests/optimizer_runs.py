"""What the tests of the optimizers share: a problem, a run, and the papers' formulas in numpy."""

import numpy as np
import tensorflow as tf

from hvdcourse.training.optimizers import LAMB, NovoGrad

STEPS = 30
FEW = {"dense/kernel": (5, 3), "dense/bias": (3,)}
SHAPES = {"conv/kernel": (3, 3, 2, 4), "dense/bias": (3,), "scalar": ()}
RATE = 0.0625  # exact in every type
LAMB_CASES = [
    {},
    {"weight_decay": 0.0625},
    {"weight_decay": 0.0625, "exclude_from_weight_decay": ["bias", "scalar"]},
    {
        "weight_decay": 0.0625,
        "exclude_from_weight_decay": ["kernel"],
        "exclude_from_layer_adaptation": ["bias"],
    },
    {"beta_1": 0.5, "beta_2": 0.75, "epsilon": 0.125},
]
NOVOGRAD_CASES = [
    {},
    {"weight_decay": 0.0625},
    {"beta_1": 0.0, "beta_2": 0.999, "epsilon": 0.125},
]
CASES = [(LAMB, case) for case in LAMB_CASES] + [(NovoGrad, case) for case in NOVOGRAD_CASES]


def problem(seed, shapes=FEW, steps=STEPS):
    """First weights, and gradients of each step, whose sizes differ widely between layers."""
    random = np.random.default_rng(seed)
    weights = {name: random.normal(size=shape) for name, shape in shapes.items()}
    sizes = {name: 10.0 ** random.integers(-4, 3) for name in shapes}
    gradients = [
        {name: random.normal(size=shape) * sizes[name] for name, shape in shapes.items()}
        for _ in range(steps)
    ]
    return weights, gradients


def sparse_problem(seed, every_row=False):
    """Gradients of a table's rows, with rows twice, and the dense gradients that they stand for."""
    random = np.random.default_rng(seed)
    sparse, dense = [], []
    for _ in range(STEPS):
        rows = random.integers(0, 6, size=4)
        rows = np.concatenate([rows, np.arange(6)]) if every_row else rows
        values = random.normal(size=(len(rows), 3))
        total = np.zeros((6, 3))
        np.add.at(total, rows, values)
        slices = tf.IndexedSlices(values, tf.constant(rows), tf.constant([6, 3], tf.int64))
        sparse.append({"table": slices})
        dense.append({"table": total})
    return {"table": random.normal(size=(6, 3))}, sparse, dense


def recorded_problem(sparse):
    """Return the problem of a record of tensorflow-addons.

    Its NovoGrad moves those rows alone that a batch used, so every batch uses all of them.
    """
    return sparse_problem(9, every_row=True)[:2] if sparse else problem(5, SHAPES)


def runs(optimizer, problems, dtype="float64", rates=None, compiled=True):
    """Yield the variables after all steps of each problem; it is traced once for all of them."""
    names = list(problems[0][0])
    variables = [tf.Variable(problems[0][0][name], name=name, dtype=dtype) for name in names]

    def step(rows):
        optimizer.apply_gradients(zip(rows, variables, strict=True))

    step = tf.function(step) if compiled else step
    for weights, gradients in problems:
        for variable in optimizer.variables():
            variable.assign(tf.zeros_like(variable))
        for name, variable in zip(names, variables, strict=True):
            variable.assign(tf.cast(weights[name], dtype))
        for number, gradient in enumerate(gradients):
            if rates is not None:
                optimizer.learning_rate = rates[number]
            step([as_gradient(gradient[name], dtype) for name in names])
        yield {name: value.numpy() for name, value in zip(names, variables, strict=True)}


def trained(optimizer, weights, gradients, **options):
    """Return the variables after all steps of one problem."""
    return next(runs(optimizer, [(weights, gradients)], **options))


def as_gradient(value, dtype):
    if isinstance(value, tf.IndexedSlices):
        return tf.IndexedSlices(tf.cast(value.values, dtype), value.indices, value.dense_shape)
    return None if value is None else tf.constant(value, dtype)


def excluded(name, patterns):
    return any(pattern in name for pattern in patterns)


def lamb_by_numpy(weights, gradients, rates, options):
    """Algorithm 2 of arXiv:1904.00962, written from the paper, with the ratio 1 for zero norms."""
    options = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6, "weight_decay": 0.0, **options}
    beta_1, beta_2, no_decay = (
        options["beta_1"],
        options["beta_2"],
        options.get("exclude_from_weight_decay", ()),
    )
    not_adapted = options.get("exclude_from_layer_adaptation", no_decay)
    ratios = {}
    x, m, v = dict(weights), dict.fromkeys(weights, 0.0), dict.fromkeys(weights, 0.0)
    for t, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        for name, g in gradient.items():
            m[name] = beta_1 * m[name] + (1 - beta_1) * g
            v[name] = beta_2 * v[name] + (1 - beta_2) * g**2
            m_hat, v_hat = m[name] / (1 - beta_1**t), v[name] / (1 - beta_2**t)
            r = m_hat / (np.sqrt(v_hat) + options["epsilon"])
            if not excluded(name, no_decay):
                r = r + options["weight_decay"] * x[name]
            norms = np.linalg.norm(np.ravel(x[name])), np.linalg.norm(np.ravel(r))
            ratio = norms[0] / norms[1] if all(norms) else 1.0
            if excluded(name, not_adapted):
                ratio = 1.0
            else:
                ratios[name] = ratio
            x[name] = x[name] - rate * ratio * r
    return x, ratios


def novograd_by_numpy(weights, gradients, rates, options):
    """Algorithm 1 of arXiv:1905.11286, written from the paper."""
    options = {"beta_1": 0.95, "beta_2": 0.98, "epsilon": 1e-8, "weight_decay": 0.0, **options}
    beta_1, beta_2 = options["beta_1"], options["beta_2"]
    w, m, v = dict(weights), {}, {}
    for gradient, rate in zip(gradients, rates, strict=True):
        for name, g in gradient.items():
            norm = np.sum(g**2)
            v[name] = beta_2 * v[name] + (1 - beta_2) * norm if name in v else norm
            d = 0.0 if excluded(name, options.get("exclude_from_weight_decay", ())) else 1.0
            bracket = g / (np.sqrt(v[name]) + options["epsilon"])
            bracket = bracket + d * options["weight_decay"] * w[name]
            m[name] = beta_1 * m[name] + bracket if name in m else bracket
            w[name] = w[name] - rate * m[name]
    return w, v


def by_numpy(optimizer_class, weights, gradients, options, rates=None):
    reference = {LAMB: lamb_by_numpy, NovoGrad: novograd_by_numpy}[optimizer_class]
    return reference(weights, gradients, rates or [RATE] * len(gradients), options)


def assert_close(values, expected, rtol):
    assert values.keys() == expected.keys()
    for name, value in values.items():
        np.testing.assert_allclose(value, expected[name], rtol=rtol, atol=rtol, err_msg=name)
