"""The plots of lesson 5: seconds by size and by setting, what a change brings, and stragglers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from hvdcourse.plots.palette import BLUE, COLORS, DARK_GRAY, GRAY, ORANGE, QUIET, VERMILION
from hvdcourse.plots.subplots import subplots


def median_and_spread(
    groups: Iterable[Sequence[float] | np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Return each group's median, and how far its minimum and its maximum are from it."""
    low, median, high = np.array([np.quantile(group, (0, 0.5, 1)) for group in groups]).T
    return median, np.stack([median - low, high - median])


def size_in_words(size: float) -> str:
    """Return bytes as text, by powers of ten: 1000 as "1 KB", 64 million as "64 MB"."""
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:g} {unit}"
        size /= 1000
    return f"{size:g} GB"


def plot_message_times(
    measured: Mapping[str, Mapping[int, Sequence[float]]],
    predicted: Mapping[str, Callable[[float], float]],
    fitted: Sequence[int],
) -> Figure:
    """Draw the seconds of an allreduce against its size, measured and by a fitted model.

    Args:
        measured: by the name of the link, then by size in bytes: seconds of each repeat.
        predicted: by the name of the link, what returns the model's seconds for a size.
        fitted: the sizes that the model was fitted to; their points are filled.
    """
    figure, axes = subplots(figsize=(7, 4))
    shifts = np.geomspace(0.94, 1.06, len(measured))  # Whiskers that coincide are still seen.
    for color, shift, (name, by_size) in zip(COLORS, shifts, measured.items(), strict=False):
        sizes = np.array(sorted(by_size))
        medians, spread = median_and_spread([by_size[size] for size in sizes])
        style: dict[str, Any] = {"color": color, "fmt": "none", "capsize": 3, "linewidth": 1}
        axes.errorbar(shift * sizes, 1e3 * medians, 1e3 * spread, **style)
        used = np.isin(sizes, fitted)
        axes.plot(shift * sizes[used], 1e3 * medians[used], "o", color=color)
        rest = {"color": color, "markerfacecolor": "white"}
        axes.plot(shift * sizes[~used], 1e3 * medians[~used], "o", **rest)
        line = np.geomspace(sizes[0], sizes[-1], 100)
        seconds = np.array([predicted[name](size) for size in line])
        axes.plot(line, 1e3 * seconds, color=color, linewidth=1.2, label=f"{name}: model", zorder=0)
    axes.plot([], [], "o", color=DARK_GRAY, label="measured, used for the fit")
    axes.plot([], [], "o", color=DARK_GRAY, markerfacecolor="white", label="measured, predicted")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda size, _: size_in_words(size))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set(xlabel="bytes that are averaged", ylabel="time (ms): median, min and max")
    axes.legend(frameon=False, fontsize=9)
    return figure


def plot_sweeps(sweeps: Mapping[str, Mapping[str, Sequence[float]]], ylabel: str) -> Figure:
    """Draw the milliseconds of each setting, as median, minimum and maximum.

    Args:
        sweeps: by what is changed, then by the setting's name: seconds of each repeat.
        ylabel: what was timed.
    """
    figure, row = subplots(
        1, len(sweeps), figsize=(4.6 * len(sweeps), 3.4), sharey=True, squeeze=False
    )
    for axes, color, (what, by_setting) in zip(row[0], COLORS, sweeps.items(), strict=False):
        medians, spread = median_and_spread(by_setting.values())
        axes.errorbar(
            list(by_setting), 1e3 * medians, 1e3 * spread, fmt="o-", color=color, capsize=4
        )
        axes.set(xlabel=what, yscale="log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    row[0, 0].set_ylabel(ylabel)
    return figure


def plot_autotune(samples: Sequence[Mapping[str, float]]) -> Figure:
    """Draw what Horovod's autotuner tried, in its order: cycle time, threshold and score.

    ``samples`` are the rows of the file that ``--autotune-log-file`` writes.
    """
    figure, axes = subplots(figsize=(7, 3.4))
    cycles = np.array([row["cycle_time_ms"] for row in samples])
    thresholds = np.array([row["tensor_fusion_threshold"] for row in samples])
    scores = np.array([row["score"] for row in samples])
    points = axes.scatter(cycles, scores, c=thresholds, cmap="viridis", s=60, zorder=2)
    for number, (cycle, score) in enumerate(zip(cycles, scores, strict=True), start=1):
        axes.annotate(str(number), (cycle, score), (6, 4), textcoords="offset points", color=QUIET)
    figure.colorbar(points, label="fusion threshold (MB)")
    axes.set(xlabel="cycle time (ms)", ylabel="score (bytes per microsecond)", ylim=(0, None))
    return figure


def plot_gains(
    speeds: Mapping[str, Sequence[float]], accuracies: Mapping[str, Sequence[float]]
) -> Figure:
    """Draw what each way does to the speed, and what to the accuracy; the first is the baseline.

    Args:
        speeds: by way, throughput relative to the baseline's of the same turn, one for each run.
        accuracies: by way, the test accuracy at the end, one for each run.
    """
    names = list(speeds)
    figure, (left, right) = subplots(1, 2, figsize=(9, 0.45 * len(names) + 1.2), sharey=True)
    for place, (name, color) in enumerate(zip(names, (QUIET, *COLORS, *COLORS), strict=False)):
        for axes, values in ((left, speeds[name]), (right, accuracies[name])):
            axes.plot(values, [place] * len(values), "o", color=color, alpha=0.45, markersize=6)
            axes.plot(np.median(values), place, "|", color=color, markersize=18, markeredgewidth=2)
    left.axvline(1, color=GRAY, linewidth=0.8, linestyle="--", zorder=0)
    left.set_yticks(range(len(names)), names)
    left.set(xlabel="throughput, baseline = 1", ylim=(len(names) - 0.5, -0.5))
    left.set_xlim(min(0.5, left.get_xlim()[0]), None)
    right.set(xlabel="test accuracy")
    for axes in (left, right):
        axes.locator_params(axis="x", nbins=5)  # or the last label of one touches the next one's
    return figure


def plot_slowest(steps: Sequence[float], measured: Mapping[int, float], predicted: Any) -> Figure:
    """Draw the step times of one rank, and the mean step of N ranks, measured and predicted.

    Args:
        steps: seconds of one rank's steps.
        measured: by number of ranks, the mean seconds of a step.
        predicted: what returns the expected seconds of the slowest of N.
    """
    figure, (left, right) = subplots(1, 2, figsize=(9, 3.2))
    left.hist(1e3 * np.asarray(steps), bins=20, color=BLUE)
    left.axvline(1e3 * np.mean(steps), color=VERMILION, label="mean")
    left.set(xlabel="a step of one rank (ms)", ylabel="steps")
    ranks = np.arange(1, max(16, *measured) + 1)
    line = [1e3 * predicted(int(n)) for n in ranks]
    right.plot(ranks, line, color=ORANGE, label="expected slowest of N, plus an allreduce")
    right.plot(
        list(measured), 1e3 * np.array(list(measured.values())), "o", color=BLUE, label="measured"
    )
    right.set(xlabel="ranks N", ylabel="mean step (ms)", ylim=(0, None))
    for axes in (left, right):
        axes.legend(frameon=False)
    return figure
