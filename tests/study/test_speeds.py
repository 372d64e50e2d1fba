"""Throughput on a chosen number of cores, and ports for those who need addresses beforehand."""

import os

import numpy as np
import pytest

from hvdcourse.paths import SOLUTIONS
from hvdcourse.study.speeds import images_per_second, only_on


def test_cores_are_given_back_after_an_error():
    before = os.sched_getaffinity(0)
    kept = []

    @only_on({min(before)})
    def fail():
        kept.append(os.sched_getaffinity(0))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert kept == [{min(before)}]
    assert os.sched_getaffinity(0) == before


@pytest.mark.ranks
def test_throughput_has_every_epoch_but_the_first():
    speeds = images_per_second(SOLUTIONS / "start_here.py", 2, cores=1, epochs=3, pixels=8)
    assert speeds.shape == (2,)
    assert np.all(speeds > 0)
