"""The plots of one device: what they draw of what was measured."""

import pytest
from matplotlib import pyplot as plt

from hvdcourse.plots import device


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_throughput_is_the_batch_size_over_the_median_time():
    figure = device.plot_batch_sizes({1: [1, 2, 9], 4: [4, 2, 1]}, 1, 0.1)
    (axes,) = figure.axes
    measured = axes.containers[0].lines[0].get_ydata()
    assert measured == pytest.approx([0.5, 2])


@pytest.mark.parametrize(("reached", "named"), [(1e9, ["overhead:\n5 times below"]), (4.5e9, [])])
def test_the_roofline_names_the_overhead_where_there_is_some(reached, named):
    figure = device.plot_roofline(
        (1e11, 1e9),
        {1: (5, reached), 64: (50, 4e10)},
        {"v += w": (0.1, 1e8), "product": (200, 1e11)},
    )
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert [text for text in texts if "overhead" in text] == named


def test_each_pipeline_has_its_epochs_and_their_median():
    (axes,) = device.plot_pipelines({"a": [1, 2, 6], "b": [3, 4, 5]}, 7).axes
    drawn = [line.get_xdata() for line in axes.lines[:4]]
    assert [list(x) for x in drawn] == [[1, 2, 6], [2], [3, 4, 5], [4]]


def test_orders_have_a_panel_each():
    panels = device.plot_orders({"one": [0, 1], "two": [1, 0]}).axes
    assert [axes.get_title() for axes in panels] == ["one", "two"]
