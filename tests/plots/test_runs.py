"""The plots of runs: which files were decoded at the same time, and when the device worked."""

import matplotlib.colors as colors
import numpy as np
import pytest
from matplotlib import pyplot as plt

from hvdcourse.plots import runs
from hvdcourse.training.fed_epoch import FedEpoch


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_files_that_were_decoded_at_the_same_time_stand_in_lanes_of_their_own():
    assert runs.lanes(np.array([[0, 2], [1, 3], [2, 4], [3, 5]])) == [0, 1, 0, 1]


def test_decoding_has_one_color_which_the_legend_names():
    decoded = {"decoded": [[[10.1, 10.2], [10.2, 10.3]], [[10.5, 10.6], [10.6, 10.7]]]}
    epoch = FedEpoch([10, 10.4], [10.3, 10.7], [10.4, 10.8], decoded)
    figure = runs.plot_feeding({"in turn": epoch}, "decoded", 1)
    work = figure.axes[0].collections[0]
    assert len(work.get_paths()) == 4
    used = {colors.to_hex(one) for one in work.get_facecolor()}
    (legend,) = figure.legends
    assert used == {colors.to_hex(legend.get_patches()[0].get_facecolor())}
    assert "busy 25%" in figure.axes[0].get_title("left")
