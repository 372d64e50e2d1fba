"""The plot of a class: its bars count who is stopped, and its cells are what the marks say."""

import numpy as np
import pytest

from hvdcourse.plots.classroom import Mark, plot_class

EXERCISES = {"one": 3, "two": 2}
M, S, U, N = Mark.MET, Mark.STOPPED, Mark.UNMET, Mark.NOT_CHECKED
MARKS = [[M, S, U, N, N], [M, M, M, S, U], [M, S, M, S, M]]


def test_each_bar_counts_who_is_stopped_and_bears_the_number_of_its_step():
    bars, grid = plot_class(EXERCISES, ["a", "b", "c"], MARKS).axes
    assert [bar.get_height() for bar in bars.patches] == [0, 2, 0, 2, 0]
    assert [text.get_text() for text in bars.texts] == ["", "2", "", "1", ""]
    (cells,) = grid.collections
    assert cells.get_array().reshape(3, 5).tolist() == MARKS
    dots = np.array(grid.lines[0].get_xydata())
    assert sorted(map(tuple, dots)) == [(2, 0), (2, 2), (4, 1), (4, 2)]
    assert [label.get_text() for label in grid.get_xticklabels()] == ["one", "two"]


@pytest.mark.parametrize("name", ["a$x$", "$_{", "a_b^c", "名前"])
def test_a_name_is_a_text_and_no_formula(name):
    figure = plot_class(EXERCISES, [name], MARKS[:1])
    figure.canvas.draw()
    (label,) = figure.axes[1].get_yticklabels()
    assert label.get_text() == name
    assert not label.get_parse_math()


def test_a_large_class_is_counted_and_not_named():
    figure = plot_class(EXERCISES, [str(number) for number in range(200)], MARKS[:1] * 200)
    assert figure.axes[1].get_ylabel() == "200 learners"
    assert figure.get_size_inches()[1] < 20
