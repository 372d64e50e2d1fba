"""The plots of a study: what stands where, read back from what Matplotlib has drawn."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from study_runs import record

from hvdcourse.plots.studies import (
    plot_accuracies,
    plot_gradient_norms,
    plot_search,
    plot_steps_to_target,
)


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    plt.close("all")


def points(axes, marker):
    """All points of a marker that were drawn, as (x, y)."""
    lines = [line for line in axes.lines if line.get_marker() == marker]
    return [(float(x), float(y)) for line in lines for x, y in zip(*line.get_data(), strict=True)]


def test_every_seed_has_a_dot_and_every_condition_a_mark_at_its_mean():
    runs = [record(seed, "plain", 0.5 + seed / 10) for seed in range(3)]
    runs += [record(seed, "better", 0.9) for seed in range(2)]
    figure = plot_accuracies(runs, baseline="better")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["plain", "better"]
    tests = [(x, round(y)) for x, y in points(axes, "o") if y % 1 > 0.5]
    assert sorted(tests) == [(0.5, 0), (0.6, 0), (0.7, 0), (0.9, 1), (0.9, 1)]
    assert sorted(x for x, _ in points(axes, "|")) == pytest.approx([0.6, 0.6, 0.9, 0.9])
    (dashed,) = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert dashed.get_xdata()[0] == pytest.approx(0.9)


def test_a_search_shows_every_seed_at_its_rate():
    found = {0.1: [0.5, 0.7], 0.01: [0.2, 0.2]}
    figure = plot_search({"Adam": {"no warmup": found}, "SGD": {"no warmup": found}})
    for axes, title in zip(figure.axes, ("Adam", "SGD"), strict=True):
        assert axes.get_title() == title
        assert sorted(points(axes, "o")) == [(0.01, 0.2), (0.01, 0.2), (0.1, 0.5), (0.1, 0.7)]
        means = axes.lines[0].get_data()
        assert np.array(means) == pytest.approx(np.array([[0.01, 0.1], [0.2, 0.6]]))


def test_a_run_that_never_came_to_its_target_is_an_arrow_above_all_others():
    def run(batch, steps):
        return {"global_batch_size": batch, "steps_to_target": steps}

    runs = [run(8, 500), run(8, 600), run(512, None), run(512, 200)]
    figure = plot_steps_to_target(
        runs, 0.9, lambda batch: 200 * (1 + 13 / batch), 13, {"late": (8, 14)}
    )
    (axes,) = figure.axes
    assert sorted(points(axes, "o")) == [(8, 500), (8, 600), (512, 200)]
    ((batch, height),) = points(axes, "^")
    assert batch == 512
    assert height > 600
    assert [text.get_text() for text in axes.texts] == ["1 of 2\nnever"]


def test_gradients_are_drawn_by_block():
    (axes,) = plot_gradient_norms({"post": [1.0, 3.0]}).axes
    assert points(axes, "o") == [(1, 1), (2, 3)]
