"""The plot of measured scaling: what is drawn is the efficiency of the numbers given."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from hvdcourse.plots.scaling import plot_chart, plot_scaling
from hvdcourse.simulate.chart import Bar


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


def test_what_the_model_was_made_to_meet_has_a_circle_and_no_prediction_has_one():
    networks = ("inception_v3", "resnet101", "vgg16")
    figure = plot_chart([Bar(name, gpus, 0.9, 0.8) for name in networks for gpus in (16, 512)])
    circles = {
        axes.get_title(): [
            tuple(line.get_xydata()[0]) for line in axes.lines if line.get_mfc() == "none"
        ]
        for axes in figure.axes
    }
    plt.close(figure)
    assert circles == {"inception_v3": [(16, 90)], "resnet101": [], "vgg16": [(16, 90)]}
