"""The plots of how far a training scales: a model beside measurements, and what it predicts."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hvdcourse.plots.palette import BLUE, COLOURS, DARK_GREY, GREY, LIGHT_GREY, VERMILION

Table = Mapping[str, np.ndarray]


def number_gpus(axes: Axes) -> None:
    """Give the axis powers of two, written as whole numbers."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("GPUs")
    axes.spines[["top", "right"]].set_visible(False)


def plot_predictions(rows: Mapping[str, Sequence[Mapping[str, float]]]) -> Figure:
    """Draw measured against predicted milliseconds, and a band of 10 percent.

    Args:
        rows: by kind of measurement, mappings with the seconds ``predicted``, and those measured as
            ``median``, ``min`` and ``max``.
    """
    figure, axes = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
    seconds = [row["predicted"] for group in rows.values() for row in group]
    ends = 1e3 * np.array([min(seconds) / 1.5, 1.5 * max(seconds)])
    axes.plot(ends, ends, color=DARK_GREY, linewidth=1, zorder=0)
    axes.fill_between(ends, 0.9 * ends, 1.1 * ends, color=LIGHT_GREY, zorder=0, label="within 10 %")
    for colour, (name, group) in zip(COLOURS, rows.items(), strict=False):
        columns = ("predicted", "median", "min", "max")
        predicted, median, low, high = (1e3 * np.array([r[c] for r in group]) for c in columns)
        style: dict[str, Any] = {"color": colour, "markersize": 4, "capsize": 2, "label": name}
        axes.errorbar(predicted, median, [median - low, high - median], fmt="o", **style)
    axes.set(xscale="log", yscale="log", xlabel="predicted (ms)", ylabel="measured (ms)")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def plot_efficiency(tables: Mapping[str, Table]) -> Figure:
    """Draw the scaling efficiency against the number of GPUs, one curve for each table."""
    figure, axes = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
    styles = itertools.cycle(("o-", "s--"))  # where two curves coincide, both are seen
    for colour, style, (name, table) in zip(COLOURS, styles, tables.items(), strict=False):
        efficiency = 100 * table["efficiency"]
        axes.plot(table["gpus"], efficiency, style, color=colour, markersize=3, label=name)
    number_gpus(axes)
    axes.set(ylabel="scaling efficiency (%)", ylim=(0, 104))
    figure.legend(loc="outside right center", frameon=False)
    return figure


def plot_cost(table: Table) -> Figure:
    """Draw time and GPU-hours to the same accuracy against the number of GPUs; one GPU is 1."""
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    axes.plot(table["gpus"], table["time"], "o-", color=BLUE, label="time to the accuracy")
    axes.plot(table["gpus"], table["cost"], "s-", color=VERMILION, label="GPU-hours")
    axes.plot(table["gpus"], 1 / table["gpus"], "--", color=GREY, label="N times as fast")
    number_gpus(axes)
    axes.set(yscale="log", ylabel="one GPU = 1")
    axes.legend(frameon=False)
    return figure


def plot_chart(rows: Mapping[str, Sequence[tuple[int, float, float]]]) -> Figure:
    """Draw published and predicted efficiency, by network and number of GPUs.

    Args:
        rows: by network, tuples of GPUs, published and predicted efficiency.
    """
    figure, panels = plt.subplots(
        1, len(rows), figsize=(3.2 * len(rows), 3), sharey=True, layout="constrained"
    )
    for axes, (name, row) in zip(np.atleast_1d(panels), rows.items(), strict=True):
        gpus, published, predicted = (np.array(column) for column in zip(*row, strict=True))
        axes.plot(gpus, 100 * predicted, "o-", color=BLUE, label="predicted")
        axes.plot(gpus, 100 * published, "D", color=VERMILION, label="published")
        number_gpus(axes)
        axes.set(title=name, xticks=gpus, ylim=(0, 104))
    np.atleast_1d(panels)[0].set_ylabel("scaling efficiency (%)")
    np.atleast_1d(panels)[0].legend(frameon=False, loc="lower left")
    return figure


def plot_speedups(runs: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw for each run the speedup that its throughput claims, and the one of its time.

    Args:
        runs: mappings with the ``name``, the number of ``gpus``, and the speedups over one GPU
            ``by_throughput`` and ``by_time``; the first run is the topmost.
    """
    figure, axes = plt.subplots(figsize=(7.5, 0.9 + 0.6 * len(runs)), layout="constrained")
    rows = range(len(runs))
    gpus, throughput, time = (
        [run[name] for run in runs] for name in ("gpus", "by_throughput", "by_time")
    )
    axes.hlines(rows, throughput, time, color=LIGHT_GREY, linewidth=3, zorder=0)
    axes.scatter(gpus, rows, s=500, color=DARK_GREY, marker="|", label="number of GPUs")
    axes.scatter(throughput, rows, s=60, color=BLUE, label="by images per second")
    axes.scatter(time, rows, s=60, color=VERMILION, marker="s", label="by seconds of training")
    axes.set(xlabel="times as fast as 1 GPU", xlim=(0, None), ylim=(len(runs) - 0.5, -0.5))
    axes.set_yticks(rows, [run["name"] for run in runs])
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure
