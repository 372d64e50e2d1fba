"""The plots of runs, of one device, and of the challenge: what they draw of what they are given."""

import matplotlib.colors as colors
import numpy as np
import pytest
from matplotlib import pyplot as plt

from hvdcourse.plots import challenge, device, runs
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


def test_a_score_is_a_bar_of_what_is_right_then_what_is_measured():
    scores = {"A": {"runs": 5, "shares": 10, "throughput": 3, "accuracy": 0}, "B": {"accuracy": 20}}
    (axes,) = challenge.plot_scores(scores).axes
    widths = [[bar.get_width() for bar in container] for container in axes.containers]
    assert widths == [[15, 0], [3, 0], [0, 20]]
    assert [text.get_text() for text in axes.texts] == ["18", "20"]


def test_a_confusion_matrix_counts_what_each_painters_images_were_taken_for():
    history = {"val_accuracy": [0.5, 0.8], "loss": [2, 1]}
    figure = challenge.plot_report(["ann", "ben"], [[3, 1], [0, 2]], history)
    left, right, loss = figure.axes
    written = {text.get_position(): text.get_text() for text in left.texts}
    assert written == {(0, 0): "3", (1, 0): "1", (1, 1): "2"}
    assert right.lines[0].get_ydata().tolist() == [0.5, 0.8]
    assert loss.lines[0].get_ydata().tolist() == [2, 1]


def test_without_metrics_the_report_says_so():
    figure = challenge.plot_report(["ann", "ben"], [[3, 1], [0, 2]], {})
    assert "no metrics" in figure.axes[1].texts[0].get_text()
