"""Plots of Horovod's timeline: the way of each gradient through one step."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from hvdcourse.plots.palette import (
    BLUE,
    DARK_GRAY,
    GRAY,
    GREEN,
    INK,
    ORANGE,
    TINTS,
    VERMILION,
)
from hvdcourse.plots.subplots import subplots
from hvdcourse.timeline.reading import Timeline

FORWARD_TINT, BACKWARD_TINT, EXPOSED_TINT = TINTS[0], TINTS[2], TINTS[1]
# What happens to a gradient: from when, until when, and how it is drawn.
PHASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "waits for all ranks": (
        "first_ready", "negotiated", {"facecolor": "white", "edgecolor": GRAY, "hatch": "/////"},
    ),
    "waits for its turn": ("negotiated", "sending", {"color": GRAY}),
    "copied in": ("copying_in", "copied_in", {"color": ORANGE}),
    "allreduce": ("sending", "sent", {"color": BLUE}),
    "copied out": ("copying_out", "copied_out", {"color": GREEN}),
}  # fmt: skip


def plot_step(timeline: Timeline) -> Figure:
    """Draw when each gradient of one step was ready, and when it was communicated.

    Rows are gradients, in the order in which they became ready; behind them are the passes of rank
    0 and, after them, the communication that is exposed. It is the step whose exposed communication
    is the median.
    """
    figure, axes = subplots(figsize=(9, 5))
    step = typical_step(timeline)
    draw_step(axes, timeline, step, describe(step))
    axes.set_xlim(left=0)
    add_legend(figure)
    return figure


def plot_steps(timelines: Mapping[str, Timeline]) -> Figure:
    """Draw the typical step of several timelines below each other, on the same time axis."""
    count = len(timelines)
    figure, all_axes = subplots(count, 1, figsize=(9, 2.5 * count), sharex=True, squeeze=False)
    for (name, timeline), axes in zip(timelines.items(), all_axes[:, 0], strict=True):
        draw_step(axes, timeline, typical_step(timeline), name)
    for axes in all_axes[:-1, 0]:
        axes.set_xlabel("")
    all_axes[0, 0].set_xlim(left=0)
    add_legend(figure)
    return figure


def typical_step(timeline: Timeline) -> pd.Series:
    """Return the step whose exposed communication is the median."""
    steps = timeline.steps
    # The first step also builds the graph, and the last may be cut off.
    inner = steps.iloc[1:-1] if len(steps) > 2 else steps
    return inner.sort_values("exposed_ms").iloc[len(inner) // 2]


def draw_step(axes: Axes, timeline: Timeline, step: pd.Series, title: str) -> None:
    """Draw one step into these axes, from the start of its forward pass on."""
    gradients = timeline.gradients[timeline.gradients["step"] == step["step"]]
    first, last = gradients["first_ready"].min(), step["end"]
    start = first if pd.isna(step["forward"]) else min(first, step["forward"])
    computed = last - step["exposed_ms"]
    axes.axvspan(computed - start, last - start, color=EXPOSED_TINT, zorder=0)
    if not pd.isna(step["forward"]):
        for begin, end, tint in (
            ("forward", "backward", FORWARD_TINT),
            ("backward", "computed", BACKWARD_TINT),
        ):
            axes.axvspan(step[begin] - start, step[end] - start, color=tint, zorder=0)
    axes.axvline(computed - start, color=VERMILION, linewidth=1, zorder=1)
    for begin, end, style in PHASES.values():
        known = gradients[begin].notna().to_numpy()
        left = gradients[begin].to_numpy() - start
        width = gradients[end].to_numpy() - start - left
        rows = range(len(gradients))
        bars = [(row, left[row], width[row]) for row in rows if known[row] and width[row] > 0]
        axes.barh(
            [row for row, _, _ in bars],
            [width for _, _, width in bars],
            left=[left for _, left, _ in bars],
            height=0.7,
            linewidth=0.6,  # so that a copy of some microseconds is seen
            zorder=2,
            **style,
        )
    axes.set(ylim=(len(gradients) - 0.4, -0.6))
    origin = "the first gradient was ready" if start == first else "the forward pass began"
    axes.set_xlabel(f"milliseconds since {origin}")
    label_rows(axes, list(gradients["name"]))
    axes.set_title(title, fontsize=10.5, loc="left", color=INK)
    axes.spines.left.set_visible(False)


def label_rows(axes: Axes, names: list[str]) -> None:
    """Name every row where there is room, else every few."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    points = figure.get_size_inches()[1] / len(figure.axes) * 72
    every = max(1, round(len(names) * 14 / points))
    rows = range(0, len(names), every)
    # The end of TensorFlow's long names tells gradients apart.
    short = [name.rpartition("/")[2].removeprefix("HorovodAllreduce_")[-28:] for name in names]
    axes.set_yticks(rows, [short[row] for row in rows], fontsize=8, color=DARK_GRAY)
    axes.tick_params(axis="y", length=0)


def describe(step: pd.Series) -> str:
    """Return the step's numbers as a title."""
    late = ""
    if step["straggler"] >= 0:
        late = f", rank {step['straggler']:.0f} was {step['delay_ms']:.1f} ms late"
    return (
        f"step {step['step']:.0f}: {step['exposed_ms']:.0f} ms exposed, "
        f"{step['gradients']:.0f} gradients in {step['allreduces']:.0f} "
        f"allreduce{'s' if step['allreduces'] > 1 else ''}{late}"
    )


def add_legend(figure: Figure) -> None:
    """Explain areas and bars above the plot."""
    areas = {
        "forward pass": FORWARD_TINT,
        "backward pass": BACKWARD_TINT,
        "exposed communication": EXPOSED_TINT,
    }
    handles = [Patch(color=tint, label=label) for label, tint in areas.items()]
    handles += [Patch(label=label, **style) for label, (_, _, style) in PHASES.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
