"""The law of steps against batch size: what is fitted to it, and what is refused."""

import numpy as np
import pytest

from hvdcourse.errors import BadInput
from hvdcourse.study.critical_batch import StepsFit, fit_steps

BATCHES = np.array([8, 16, 64, 256])


def test_a_fit_gives_the_law_back_that_its_points_were_made_of():
    law = StepsFit(200.0, 20.0)
    fit = fit_steps(BATCHES, law.steps(BATCHES))
    assert (fit.least_steps, fit.critical_batch) == pytest.approx((200, 20))


def test_at_the_critical_batch_steps_are_twice_the_least_and_half_of_the_images_is_wasted():
    law = StepsFit(200.0, 20.0)
    assert law.steps(20) == pytest.approx(400)
    assert law.efficiency(20) == pytest.approx(0.5)
    images = [batch * law.steps(batch) for batch in (1e-6, 20)]
    assert images[0] / images[1] == pytest.approx(law.efficiency(20), rel=1e-6)


@pytest.mark.parametrize(
    ("batches", "steps", "said"),
    [
        ([8, 16], [10, 5], "at least 3 points; got 2"),
        ([8, 16, 32], [10, 20, 30], "no law fits"),
        ([8, 16, 32], [800, 400, 100], "no law fits"),
    ],
)
def test_points_that_are_no_law_are_refused(batches, steps, said):
    with pytest.raises(BadInput, match=said):
        fit_steps(batches, steps)
