"""The gradient noise scale, against gradients whose mean and covariance are known."""

import math

import numpy as np
import pytest

from hvdcourse.study.noise_scale import noise_scale, unbiased

RANKS, BATCH, STEPS = 4, 8, 20_000


@pytest.fixture(scope="module")
def norms():
    """Squared norms of each step, the known ‖G‖² and tr Σ; every parameter has noise of its own."""
    random = np.random.default_rng(0)
    gradient, deviations = np.array([0.3, -0.2, 0.1]), np.array([1.0, 2.0, 0.5])
    # The mean of b images' gradients: noise of a b-th of the variance.
    noise = random.normal(size=(STEPS, RANKS, 3)) * deviations / math.sqrt(BATCH)
    each = gradient + noise
    own = (each**2).sum(axis=2).mean(axis=1)
    mean = (each.mean(axis=1) ** 2).sum(axis=1)
    return own, mean, (gradient**2).sum(), (deviations**2).sum()


def test_both_estimates_have_no_bias(norms):
    own, mean, true_signal, true_noise = norms
    rows = np.array([unbiased(a, b, BATCH, RANKS) for a, b in zip(own, mean, strict=True)])
    errors = rows.std(axis=0, ddof=1) / math.sqrt(STEPS)
    assert (np.abs(rows.mean(axis=0) - [true_signal, true_noise]) < 4 * errors).all()
    # So sharp that the plain ‖g_B‖² is seen to be too large.
    assert mean.mean() - true_signal > 10 * errors[0]


def test_the_noise_scale_of_many_steps_is_the_true_ratio(norms):
    own, mean, true_signal, true_noise = norms
    assert noise_scale(own, mean, BATCH, RANKS) == pytest.approx(true_noise / true_signal, rel=0.1)


def test_without_noise_the_scale_is_zero():
    assert noise_scale([4.0, 4.0], [4.0, 4.0], BATCH, RANKS) == 0


def test_nothing_but_noise_has_no_scale():
    assert math.isnan(noise_scale([8.0], [1.0], BATCH, RANKS))


def test_a_step_that_was_not_finite_is_not_left_out_silently():
    assert math.isnan(noise_scale([8.0, None], [4.0, None], BATCH, RANKS))
