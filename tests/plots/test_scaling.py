"""The plot of measured scaling: what is drawn is the efficiency of the numbers given."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from hvdcourse.plots.scaling import plot_scaling


def test_efficiency_is_throughput_over_ranks_times_that_of_one():
    measured = {
        "weak": {1: np.array([90.0, 100, 110]), 2: np.array([150.0, 180, 170])},
        "strong": {1: np.array([100.0]), 2: np.array([160.0])},
    }
    figure = plot_scaling(measured, {"weak": {2: 0.95}}, np.array([140.0]))
    figure.canvas.draw()
    left, right = figure.axes
    drawn = {line.get_label(): line.get_ydata() for line in right.lines}
    bars = {bar.get_label(): bar.lines[0].get_ydata() for bar in right.containers}
    plt.close(figure)
    assert bars["weak"] == pytest.approx([100, 85])
    assert bars["strong"] == pytest.approx([100, 80])
    assert drawn["weak, formula"] == pytest.approx([95])
    assert list(left.get_xticks()) == [1, 2]
