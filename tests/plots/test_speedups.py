"""The drawing of claimed speedups: every dot is where its number says."""

import numpy as np
from matplotlib import pyplot as plt

from hvdcourse.plots.scaling import plot_speedups


def test_each_run_has_its_limit_and_both_of_its_speedups_in_a_row():
    runs = [
        {"name": "four", "gpus": 4, "by_throughput": 4.5, "by_time": 3.9},
        {"name": "twelve", "gpus": 12, "by_throughput": 12.0, "by_time": 7.9},
    ]
    (axes,) = plot_speedups(runs).axes
    dots = {
        group.get_label(): np.asarray(group.get_offsets()).tolist()
        for group in axes.collections
        if not group.get_label().startswith("_")
    }
    assert dots == {
        "number of GPUs": [[4, 0], [12, 1]],
        "by images per second": [[4.5, 0], [12.0, 1]],
        "by seconds of training": [[3.9, 0], [7.9, 1]],
    }
    assert [label.get_text() for label in axes.get_yticklabels()] == ["four", "twelve"]
    bottom, top = axes.get_ylim()
    assert bottom > top
    plt.close("all")
