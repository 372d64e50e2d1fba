"""The plots of the challenge: scores, and how a program classified the test images."""

import pytest
from matplotlib import pyplot as plt

from hvdcourse.plots import challenge


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


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
