"""Plots of one device and what feeds it: batch sizes, the roofline, orders, and pipelines."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from hvdcourse.plots.palette import BLUE, DARK_GRAY, GRAY, GREEN, INK, ORANGE, VERMILION
from hvdcourse.plots.subplots import subplots


def plot_batch_sizes(times: Mapping[int, Sequence[float]], t0: float, t1: float) -> Figure:
    """Draw throughput against batch size, and the two limits that t(B) = t0 + B t1 is made of.

    Args:
        times: for each batch size the measured times of one step, in seconds.
        t0: seconds a step, whatever the batch.
        t1: seconds an image.
    """
    figure, axes = subplots(figsize=(7, 4))
    sizes = np.array(list(times))
    slow, middle, fast = (
        sizes / np.quantile(list(times.values()), quantile, axis=1)
        for quantile in (0.75, 0.5, 0.25)
    )
    line = np.geomspace(sizes[0], sizes[-1], 100)
    axes.plot(line, line / (t0 + line * t1), color=VERMILION, label=r"fit $B / (t_0 + B\,t_1)$")
    axes.plot(line, line / t0, ":", color=DARK_GRAY, label=r"overhead alone: $B / t_0$")
    axes.axhline(1 / t1, linestyle="--", color=DARK_GRAY, label=r"images alone: $1 / t_1$")
    spread = [middle - slow, fast - middle]
    axes.errorbar(
        sizes, middle, spread, fmt="o", color=BLUE, capsize=4,
        label="measured: median, and the middle half",
    )  # fmt: skip
    axes.set(xscale="log", yscale="log", ylim=(0.7 * slow.min(), 2.2 / t1))
    axes.set(xlabel="batch size B", ylabel="throughput (images/s)")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    # Powers of ten alone would leave the plateau without a number.
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.legend(frameon=False, loc="lower right")
    return figure


def plot_roofline(
    roofs: tuple[float, float],
    steps: Mapping[int, tuple[float, float]],
    others: Mapping[str, tuple[float, float]],
) -> Figure:
    """Draw the roofline, the training steps by batch size, and other work by name.

    Args:
        roofs: operations and bytes a second that the device can do.
        steps: for each batch size the operations a byte, and the operations a second.
        others: the same for other work.
    """
    operations, moved = roofs
    figure, axes = subplots(figsize=(7, 4))
    across = np.geomspace(0.03, 1000, 200)
    roof = np.minimum(operations, across * moved)
    axes.plot(across, roof / 1e9, color=DARK_GRAY, label="roof: min(P, I W)")
    axes.axvline(operations / moved, color=GRAY, linestyle=":", label="I = P / W")
    intensity, reached = np.transpose(list(steps.values()))
    # No line between the points: where they crowd on the plateau it would only show noise.
    axes.plot(intensity, reached / 1e9, "o", color=BLUE, label="training step, by batch size")
    named = {size: step for size, step in steps.items() if size in (1, 8, max(steps))}
    for size, (x, y) in named.items():
        axes.annotate(f"B = {size}", (x, y / 1e9), (9, -11), textcoords="offset points", fontsize=9)
    for marker, color, (name, (x, y)) in zip("sD", (ORANGE, GREEN), others.items(), strict=True):
        axes.plot(x, y / 1e9, marker, color=color, linestyle="", label=name)
    x, y = intensity[0], reached[0]
    top = min(operations, x * moved)
    if top > 1.5 * y:
        axes.annotate(
            "", (x, top / 1e9), (x, y / 1e9), arrowprops={"arrowstyle": "<->", "color": VERMILION}
        )
        axes.text(
            0.85 * x, np.sqrt(top * y) / 1e9, f"overhead:\n{top / y:.0f} times below",
            color=VERMILION, ha="right", va="center", fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},  # over the roof
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", ylabel="operations per second (Gflop/s)")
    axes.set_xlabel("arithmetic intensity I (operations per byte)")
    axes.legend(frameon=False, loc="lower right")
    return figure


def plot_orders(orders: Mapping[str, Sequence[int]]) -> Figure:
    """Draw where each sample of an epoch comes from, one panel for each order."""
    figure, panels = subplots(1, len(orders), figsize=(3 * len(orders), 3.2), sharey=True)
    for axes, (name, order) in zip(panels, orders.items(), strict=True):
        axes.scatter(range(len(order)), order, s=4, color=BLUE)
        axes.set(title=name, xlabel="place in the epoch")
    panels[0].set_ylabel("place in the folder")
    return figure


def plot_pipelines(speeds: Mapping[str, Sequence[float]], ceiling: float) -> Figure:
    """Draw images a second of each epoch of each pipeline, and a line at what is possible."""
    figure, axes = subplots(figsize=(8, 0.45 * len(speeds) + 1.2))
    for place, of_pipeline in enumerate(speeds.values()):
        axes.plot(of_pipeline, [place] * len(of_pipeline), "o", color=BLUE, alpha=0.6)
        axes.plot(np.median(of_pipeline), place, "|", color=INK, markersize=18, markeredgewidth=2)
    axes.axvline(ceiling, color=DARK_GRAY, linestyle="--")
    axes.annotate("the device alone", (ceiling, -0.6), (-4, 0), textcoords="offset points",
                  ha="right", va="center", fontsize=9)  # fmt: skip
    axes.set_yticks(range(len(speeds)), list(speeds))
    axes.set(ylim=(len(speeds) - 0.5, -0.9), xlim=(0, None))
    axes.set_xlabel("images a second; a dot for each epoch, a bar for their median")
    return figure


def plot_utilization(ways: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """Draw how busy a GPU is over time, for ways to feed it: rows of seconds, percent, and more."""
    figure, axes = subplots(figsize=(8, 3.4))
    for color, (name, rows) in zip((VERMILION, BLUE, GREEN), ways.items(), strict=True):
        seconds, percent = np.transpose([row[:2] for row in rows])
        axes.plot(seconds, percent, ".-", color=color, label=name)
    axes.set(xlabel="time (s)", ylabel="GPU busy (%)", ylim=(0, 100))
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=1)
    return figure
