"""The equations that lamb.py's check judges by are those of the course's own LAMB."""

import random
import re

import numpy as np
import pytest
from optimizer_runs import RATE, assert_close, trained

from hvdcourse.checks.exercises import lamb
from hvdcourse.checks.exercises.lamb_updates import difference
from hvdcourse.training.optimizers import LAMB

SHAPES = {"hidden_1/kernel": (5, 4), "hidden_2/kernel": (4, 4), "head/kernel": (4, 3)}
SHAPES |= {"hidden_1/bias": (4,), "norm/gamma": (4,), "head/bias": (3,)}
UPDATES = 12


def random_problem(seed):
    """Return weights and gradients, with zeros among both at first, and options."""
    generator = np.random.default_rng(seed)
    random.seed(seed)
    weights = {name: generator.normal(size=shape) for name, shape in SHAPES.items()}
    gradients = [
        {name: generator.normal(size=shape) for name, shape in SHAPES.items()}
        for _ in range(UPDATES)
    ]
    weights["head/kernel"][:] = 0
    for gradient in gradients[:3]:
        gradient["hidden_1/kernel"][:] = 0
    chosen = lamb.arguments()
    patterns = chosen["exclude"].split(",")
    options = {name: chosen[name] for name in ("beta_1", "beta_2", "epsilon")}
    options["learning_rate"] = RATE  # Keras rounds it to 32 bits
    options["weight_decay"] = generator.choice([0.0, chosen["weight_decay"]])
    return weights, gradients, {**options, "exclude_from_weight_decay": patterns}


def by_the_checks_equations(weights, gradients, options):
    """Return the weights after all updates, and the trust ratios in the order of the updates."""
    betas = options["beta_1"], options["beta_2"]
    x, ratios = dict(weights), []
    m, v = dict.fromkeys(x, 0.0), dict.fromkeys(x, 0.0)
    for t, gradient in enumerate(gradients, start=1):
        for name, g in gradient.items():
            m[name], v[name] = lamb.moments(m[name], v[name], g, *betas)
            u = lamb.direction(m[name], v[name], t, *betas, options["epsilon"])
            ratio = 1.0
            if not lamb.is_excluded(f"{name}:0", options["exclude_from_weight_decay"]):
                u = u + options["weight_decay"] * x[name]
                ratio = lamb.trust_ratio(x[name], u)
            ratios.append(ratio)
            x[name] = x[name] - options["learning_rate"] * ratio * u
    return x, ratios


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("dtype", "accuracy"), [("float32", 1e-4), ("float64", 1e-12)])
def test_the_checks_equations_make_the_updates_of_the_courses_lamb(seed, dtype, accuracy):
    weights, gradients, options = random_problem(seed)
    expected, ratios = by_the_checks_equations(weights, gradients, options)
    assert len(set(ratios)) > UPDATES
    values = trained(LAMB(**options), weights, gradients, dtype=dtype, compiled=False)
    assert_close(values, expected, accuracy)


@pytest.mark.parametrize(("x", "u"), [(0, 1), (1, 0), (0, 0)])
def test_a_norm_of_zero_makes_the_trust_ratio_1(x, u):
    assert lamb.trust_ratio(np.full(3, float(x)), np.full(3, float(u))) == 1.0


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1.0, 2.0], ""),
        ([1.0001, 2.0], ""),
        ([0.9, 1.8], "m is 0.9 times what it should be"),
        ([0.0, 0.0], "m is zero and should not be"),
        ([2.0, 1.0], "m is 63 % away from what it should be"),
        ([1.0, np.nan], "m has numbers that are not finite"),
        ([1.0], "m has the shape (1,) instead of (2,)"),
    ],
)
def test_a_difference_is_said_in_words(value, said):
    assert difference("m", np.array(value), np.array([1.0, 2.0])) == said


def test_what_should_be_zero_is_said_to_be():
    assert difference("r", np.ones(2), np.zeros(2)) == "r should be zero"


# What learners write in the place of the search for any of the expressions.
OTHER_EXCLUSIONS = {
    "a part of the name": lambda name, patterns: any(pattern in name for pattern in patterns),
    "from the beginning": lambda name, patterns: any(re.match(p, name) for p in patterns),
    "all of them": lambda name, patterns: all(re.search(p, name) for p in patterns),
    "the whole name": lambda name, patterns: name in patterns,
    "the whole name as an expression": lambda name, patterns: any(
        re.fullmatch(p, name) for p in patterns
    ),
    "the end of the name": lambda name, patterns: name.endswith(tuple(patterns)),
    "after anything": lambda name, patterns: any(re.match(f".*{p}", name) for p in patterns),
    "without its own end": lambda name, patterns: any(
        re.search(p, name.removesuffix(":0")) for p in patterns
    ),
    "in small letters": lambda name, patterns: any(re.search(p, name, re.I) for p in patterns),
}


@pytest.mark.parametrize("other", OTHER_EXCLUSIONS)
@pytest.mark.parametrize("patterns", lamb.PATTERNS)
def test_every_choice_of_patterns_tells_each_mistake(patterns, other):
    names = [f"{name}:0" for name in (*SHAPES, "hidden_2/bias", "norm/beta", "hidden_3/kernel")]
    chosen = patterns.split(",")
    wrong = OTHER_EXCLUSIONS[other]
    assert any(wrong(name, chosen) != lamb.is_excluded(name, chosen) for name in names)


def test_every_choice_of_patterns_excludes_some_layers_and_never_the_special_ones():
    names = [*SHAPES, "hidden_2/bias", "norm/beta"]
    for patterns in lamb.PATTERNS:
        excluded = {name for name in names if lamb.is_excluded(f"{name}:0", patterns.split(","))}
        assert excluded
        assert excluded.isdisjoint({"hidden_1/kernel", "norm/gamma", "head/kernel"})
