"""The plot of an elastic job: how training went on, and what was done to its workers."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hvdcourse.launch.result import RunResult
from hvdcourse.plots.palette import COLOURS, LINE, SLATE


def plot_elastic(result: RunResult) -> Figure:
    """Draw rank 0's loss and test accuracy over time, coloured by the number of workers.

    Vertical lines show when a worker was killed or a host was added; time is in seconds from the
    end of the first epoch.
    """
    evidence = result.ranks[0].evidence
    reports = [(line["report"], line["value"]) for line in evidence if "report" in line]
    epochs = [value for name, value in reports if name == "epoch" and value["rank"] == 0]
    start = epochs[0]["time"]
    figure, (upper, lower) = plt.subplots(
        2, 1, figsize=(8.5, 4.6), sharex=True, layout="constrained"
    )
    for axes, name in ((upper, "loss"), (lower, "test_accuracy")):
        times = [epoch["time"] - start for epoch in epochs]
        axes.plot(times, [epoch[name] for epoch in epochs], color=LINE, zorder=1)
        for size in sorted({epoch["size"] for epoch in epochs}):
            chosen = [epoch for epoch in epochs if epoch["size"] == size]
            axes.scatter(
                [epoch["time"] - start for epoch in chosen],
                [epoch[name] for epoch in chosen],
                s=18,
                color=COLOURS[(size - 1) % len(COLOURS)],
                label="1 worker" if size == 1 else f"{size} workers",
                zorder=2,
            )
        axes.set_ylabel(name.replace("_", " "))
        axes.spines[["top", "right"]].set_visible(False)
        mark_events(axes, reports, start, named=axes is upper)
    lower.set(xlabel="seconds since the first epoch ended", ylim=(0, 1.02))
    lower.legend(frameon=False, loc="lower right")
    return figure


def mark_events(
    axes: Axes, reports: list[tuple[str, dict[str, Any]]], start: float, named: bool
) -> None:
    """Draw a line where a worker was killed or a host was added."""
    events = [(name, value) for name, value in reports if name in ("killed", "added")]
    for number, (name, value) in enumerate(events):
        moment = value["time"] - start
        axes.axvline(moment, color=SLATE, linestyle=":", linewidth=1)
        if named:
            text = f"rank {value['ranks'][0]} killed" if name == "killed" else "a host added"
            axes.annotate(
                text,
                (moment, 1),
                xycoords=("data", "axes fraction"),
                xytext=(0, 13 * number + 2),  # side by side they would overlap
                textcoords="offset points",
                fontsize=9,
            )
