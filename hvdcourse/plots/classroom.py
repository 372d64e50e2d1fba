"""The plot of a class: which steps each learner has met, and where how many are stopped."""

from collections.abc import Mapping, Sequence
from enum import IntEnum

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from hvdcourse.plots.palette import BLUE, DARK_GRAY, INK, LIGHT_GRAY, TINTS, VERMILION, WHITE

# Inches.
_STEP, _TALLEST = 0.17, 14.0


class Mark(IntEnum):
    """What is known of one learner's step."""

    NOT_CHECKED = 0
    UNMET = 1
    STOPPED = 2
    MET = 3


LABELS = {
    Mark.MET: ("met", BLUE),
    Mark.STOPPED: ("first step not met", VERMILION),
    Mark.UNMET: ("not met, after that step", TINTS[1]),
    Mark.NOT_CHECKED: ("not checked", LIGHT_GRAY),
}


def plot_class(
    exercises: Mapping[str, int], names: Sequence[str], marks: Sequence[Sequence[Mark]]
) -> Figure:
    """Draw a row of cells for each learner, and above them how many are stopped at each step.

    Args:
        exercises: how many steps each exercise has, by its name, in the order of the course.
        names: of the learners.
        marks: for each learner one for every step of every exercise, in the same order.
    """
    cells = np.array(marks, int)
    rows, columns = cells.shape
    height = min(_TALLEST, _STEP * rows)
    figure = Figure(figsize=(columns * _STEP + 2.2, height + 3.6), layout="constrained")
    bars, grid = figure.subplots(2, 1, sharex=True, height_ratios=(1.3, max(height, _STEP)))
    numbers = [number for count in exercises.values() for number in range(1, count + 1)]
    _draw_stops(bars, (cells == Mark.STOPPED).sum(axis=0), numbers)
    colors = ListedColormap([LABELS[mark][1] for mark in Mark])
    edges = (np.arange(columns + 1) + 0.5, np.arange(rows + 1) - 0.5)
    grid.pcolormesh(*edges, cells, cmap=colors, vmin=0, vmax=len(Mark) - 1, edgecolor=WHITE)
    # Who cannot tell the colors apart sees a dot.
    row, column = np.nonzero(cells == Mark.STOPPED)
    grid.plot(column + 1, row, ".", color=WHITE, markersize=3)
    grid.invert_yaxis()
    # A name is a text and no formula, whatever characters it has.
    grid.set_yticks(range(rows), names, fontsize=7, parse_math=False)
    if rows * _STEP > _TALLEST:
        grid.set_yticks([])
        grid.set_ylabel(f"{rows} learners")
    grid.spines[:].set_visible(False)
    grid.tick_params(length=0)
    _name_exercises(bars, grid, exercises)
    shown = [Patch(color=color, label=label) for label, color in LABELS.values()]
    figure.legend(handles=shown, loc="outside upper center", ncols=len(shown), frameon=False)
    return figure


def _draw_stops(axes: Axes, stopped: np.ndarray, numbers: Sequence[int]) -> None:
    """Draw how many learners are stopped at each step, with the step's number on its bar."""
    places = np.arange(1, len(stopped) + 1)
    bars = axes.bar(places, stopped, color=VERMILION, width=0.8)
    labels = [str(n) if count else "" for n, count in zip(numbers, stopped, strict=True)]
    axes.bar_label(bars, labels, fontsize=7, color=INK)
    axes.set_ylabel("learners\nstopped here")
    axes.set_title("The number on a bar is that of its step.", loc="left", fontsize=8, color=INK)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
    axes.set_ylim(0, max(1, stopped.max()) * 1.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="x", length=0)


def _name_exercises(bars: Axes, grid: Axes, exercises: Mapping[str, int]) -> None:
    """Write the exercises below their steps."""
    ends = np.cumsum(list(exercises.values()))
    starts = ends - list(exercises.values())
    grid.set_xticks((starts + ends + 1) / 2, exercises, rotation=90, fontsize=8)
    for end in ends[:-1]:
        for axes in (bars, grid):
            axes.axvline(end + 0.5, color=DARK_GRAY, linewidth=0.7)
