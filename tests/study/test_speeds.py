"""Throughput on a chosen number of cores."""

import numpy as np
import pytest

from hvdcourse.paths import SOLUTIONS
from hvdcourse.study.speeds import images_per_second


@pytest.mark.ranks
def test_throughput_has_every_epoch_but_the_first():
    speeds = images_per_second(SOLUTIONS / "start_here.py", 2, cores=1, epochs=3, pixels=8)
    assert speeds.shape == (2,)
    assert np.all(speeds > 0)
