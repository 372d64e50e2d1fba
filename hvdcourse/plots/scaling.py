"""The plots of how far a training scales: a model, measurements, and what it predicts."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hvdcourse.plots.palette import BLUE, COLORS, DARK_GRAY, GRAY, LIGHT_GRAY, VERMILION
from hvdcourse.plots.performance import median_and_spread
from hvdcourse.plots.subplots import subplots
from hvdcourse.simulate.chart import Bar

Table = Mapping[str, np.ndarray]


def number_gpus(axes: Axes) -> None:
    """Give the axis powers of two, written as whole numbers."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("GPUs")


def plot_predictions(rows: Mapping[str, Sequence[Mapping[str, float]]]) -> Figure:
    """Draw measured against predicted milliseconds, and a band of 10 percent.

    Args:
        rows: by kind of measurement, mappings with the seconds ``predicted``, and those measured as
            ``median``, ``min`` and ``max``.
    """
    figure, axes = subplots(figsize=(5.6, 4.4))
    seconds = [row["predicted"] for group in rows.values() for row in group]
    ends = 1e3 * np.array([min(seconds) / 1.5, 1.5 * max(seconds)])
    axes.plot(ends, ends, color=DARK_GRAY, linewidth=1, zorder=0.5, label="predicted = measured")
    axes.fill_between(ends, 0.9 * ends, 1.1 * ends, color=LIGHT_GRAY, zorder=0, label="within 10 %")
    for color, (name, group) in zip(COLORS, rows.items(), strict=False):
        columns = ("predicted", "median", "min", "max")
        predicted, median, low, high = (1e3 * np.array([r[c] for r in group]) for c in columns)
        style: dict[str, Any] = {"color": color, "markersize": 4, "capsize": 2, "label": name}
        axes.errorbar(predicted, median, [median - low, high - median], fmt="o", **style)
    axes.set(xscale="log", yscale="log", xlabel="predicted (ms)")
    axes.set_ylabel("measured (ms): median, min and max")
    axes.legend(frameon=False)
    return figure


def plot_host_efficiency(steps: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the weak scaling of real steps on several hosts, and lines for what was predicted.

    Args:
        steps: mappings with ``rate``, the link between the hosts; ``ranks``, one a host; the
            seconds ``compute`` and ``predicted`` of a step; and those measured as ``median``,
            ``min`` and ``max``.
    """
    figure, axes = subplots(figsize=(5.6, 3.6))
    rates = dict.fromkeys(step["rate"] for step in steps)
    for aside, (color, rate) in enumerate(zip(COLORS, rates, strict=False)):
        of_rate = sorted((s for s in steps if s["rate"] == rate), key=lambda step: step["ranks"])
        columns = ("predicted", "median", "min", "max")
        predicted, median, best, worst = (
            np.array([100 * step["compute"] / step[column] for step in of_rate])
            for column in columns
        )
        hosts = np.array([step["ranks"] for step in of_rate])
        style: dict[str, Any] = {"color": color, "markersize": 4, "capsize": 2, "label": rate}
        beside = hosts * 1.03**aside  # bars of several links would hide each other
        axes.errorbar(beside, median, [median - worst, best - median], fmt="o", **style)
        axes.plot([1, *hosts], [100, *predicted], "--", color=color, linewidth=1)
    axes.plot([], [], "--", color=DARK_GRAY, linewidth=1, label="predicted")
    axes.set(xscale="log", xticks=[1, 2, 4, 8], xticklabels=[1, 2, 4, 8], ylim=(0, 104))
    axes.set(xlabel="hosts, one rank on each", ylabel="scaling efficiency (%)")
    axes.minorticks_off()
    figure.legend(loc="outside right center", frameon=False)
    return figure


def plot_efficiency(tables: Mapping[str, Table]) -> Figure:
    """Draw the scaling efficiency against the number of GPUs, one curve for each table."""
    figure, axes = subplots(figsize=(7.5, 3.8))
    styles = itertools.cycle(("o-", "s--"))  # where two curves coincide, both are seen
    for color, style, (name, table) in zip(COLORS, styles, tables.items(), strict=False):
        efficiency = 100 * table["efficiency"]
        axes.plot(table["gpus"], efficiency, style, color=color, markersize=3, label=name)
    number_gpus(axes)
    axes.set(ylabel="scaling efficiency (%)", ylim=(0, 104))
    figure.legend(loc="outside right center", frameon=False)
    return figure


def plot_cost(table: Table) -> Figure:
    """Draw time and GPU-hours to the same accuracy against the number of GPUs; one GPU is 1."""
    figure, axes = subplots(figsize=(7, 3.6))
    axes.plot(table["gpus"], table["time"], "o-", color=BLUE, label="time to the accuracy")
    axes.plot(table["gpus"], table["cost"], "s-", color=VERMILION, label="GPU-hours")
    axes.plot(table["gpus"], 1 / table["gpus"], "--", color=GRAY, label="N times as fast")
    number_gpus(axes)
    axes.set(yscale="log", ylabel="one GPU = 1")
    axes.legend(frameon=False)
    return figure


def plot_chart(bars: Sequence[Bar]) -> Figure:
    """Draw published and predicted efficiency, by network and number of GPUs.

    A circle marks the published points that the model was made to meet.
    """
    networks = list(dict.fromkeys(bar.network for bar in bars))
    figure, panels = subplots(1, len(networks), figsize=(3.2 * len(networks), 3), sharey=True)
    circle = {"mfc": "none", "mec": DARK_GRAY, "markersize": 14, "label": "used by the model"}
    for axes, name in zip(np.atleast_1d(panels), networks, strict=True):
        row = [bar for bar in bars if bar.network == name]
        gpus = [bar.gpus for bar in row]
        predicted, published = (
            [100 * getattr(bar, kind) for bar in row] for kind in ("predicted", "published")
        )
        axes.plot(gpus, predicted, "o-", color=BLUE, label="predicted")
        axes.plot(gpus, published, "D", color=VERMILION, label="published")
        for bar in filter(lambda bar: bar.is_calibrated, row):
            axes.plot(bar.gpus, 100 * bar.published, "o", **circle)
        number_gpus(axes)
        axes.set(title=name, xticks=gpus, ylim=(0, 110))
    np.atleast_1d(panels)[0].set_ylabel("scaling efficiency (%)")
    np.atleast_1d(panels)[0].legend(frameon=False, loc="lower left")
    return figure


def plot_speedups(runs: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw for each run the speedup that its throughput claims, and the one of its time.

    Args:
        runs: mappings with the ``name``, the number of ``gpus``, and the speedups over one GPU
            ``by_throughput`` and ``by_time``; the first run is the topmost.
    """
    figure, axes = subplots(figsize=(7.5, 0.9 + 0.6 * len(runs)))
    rows = range(len(runs))
    gpus, throughput, time = (
        [run[name] for run in runs] for name in ("gpus", "by_throughput", "by_time")
    )
    axes.hlines(rows, throughput, time, color=LIGHT_GRAY, linewidth=3, zorder=0)
    axes.scatter(gpus, rows, s=500, color=DARK_GRAY, marker="|", label="number of GPUs")
    axes.scatter(throughput, rows, s=60, color=BLUE, label="by images per second")
    axes.scatter(time, rows, s=60, color=VERMILION, marker="s", label="by seconds of training")
    axes.set(xlabel="times as fast as 1 GPU", xlim=(0, None), ylim=(len(runs) - 0.5, -0.5))
    axes.set_yticks(rows, [run["name"] for run in runs])
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def plot_scaling(
    measured: Mapping[str, Mapping[int, np.ndarray]],
    formula: Mapping[str, Mapping[int, float]],
    all_cores: np.ndarray,
) -> Figure:
    """Draw throughput and scaling efficiency against the number of ranks, and the formula's.

    Args:
        measured: images per second of all ranks together, float64 of shape (epochs,), by the kind
            of scaling and the number of ranks, of which 1 is the reference.
        formula: the predicted efficiency, by the same.
        all_cores: images per second of one process that has all cores, of shape (epochs,).
    """
    figure, (left, right) = subplots(1, 2, figsize=(9, 3.6))
    ranks = sorted(set().union(*measured.values()))
    shifts = np.linspace(-0.05, 0.05, len(measured))  # Points that coincide are still seen.
    for color, shift, (name, points) in zip(COLORS, shifts, measured.items(), strict=False):
        numbers = np.array(list(points))
        middle, spread = median_and_spread(points.values())
        style: dict[str, Any] = {"fmt": "o-", "color": color, "capsize": 5, "label": name}
        left.errorbar(numbers + shift, middle, spread, **style)
        percent = 100 / (numbers * np.median(points[1]))
        right.errorbar(numbers + shift, middle * percent, spread * percent, **style)
        expected = np.array([[n, 100 * share] for n, share in formula.get(name, {}).items()])
        if len(expected):
            label = f"{name}, formula"
            counts, shares = expected.T
            right.plot(counts + shift, shares, "x", color=color, markersize=9, label=label)
        ideal = np.array(ranks) * np.median(points[1])
    left.plot(ranks, ideal, "--", color=DARK_GRAY, label="N times one rank")
    left.axhline(np.median(all_cores), color=GRAY, linestyle=":", label="one process, all cores")
    right.axhline(100, color=DARK_GRAY, linestyle="--")
    left.set(ylabel="images per second, all ranks", ylim=(0, None))
    right.set(ylabel="scaling efficiency (%)", ylim=(0, max(115, right.get_ylim()[1])))
    for axes in (left, right):
        axes.set(xlabel="ranks", xticks=ranks)
        axes.legend(frameon=False, fontsize=8)
    left.set_title("median of both turns; whiskers: min and max", fontsize=9)
    return figure


def plot_published(networks: Mapping[str, tuple[float, float, float]]) -> Figure:
    """Draw published efficiency, and how many weights there are for the work of an image.

    Args:
        networks: by name the efficiency in percent, the weights, and the multiply-adds of a
            forward pass of one image.
    """
    figure, (left, right) = subplots(1, 2, figsize=(8, 3))
    for color, (name, counts) in zip(COLORS, networks.items(), strict=False):
        efficiency, weights, multiply_adds = counts
        left.bar(name, efficiency, color=color)
        left.text(name, efficiency - 9, f"{efficiency} %", ha="center", color="white")
        right.bar(name, 1000 * weights / multiply_adds, color=color)
    left.set(ylabel="scaling efficiency (%)", ylim=(0, 100))
    right.set(ylabel="weights per 1000 multiply-adds")
    return figure
