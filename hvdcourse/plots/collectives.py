"""Plots of lesson 1: waiting in a barrier, equal gradients, and who sends how many bytes."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from hvdcourse.plots.palette import BLUE, GREEN, QUIET, VERMILION

# A difference below this many times the precision of its numbers is rounding.
ROUNDING = 100


def plot_barrier(times: Sequence[tuple[float, float]]) -> Figure:
    """Draw when each rank arrived at a barrier, and when it left (s), as bars on a time axis."""
    figure, axes = plt.subplots(figsize=(7, 2.4))
    arrivals = np.array([arrival for arrival, _ in times])
    waits = np.array([departure for _, departure in times]) - arrivals
    ranks = range(len(times))
    axes.barh(ranks, arrivals, color=BLUE, label="works")
    style: dict[str, Any] = {"color": "white", "edgecolor": QUIET, "hatch": "///"}
    axes.barh(ranks, waits, left=arrivals, label="waits in the barrier", **style)
    axes.set(xlabel="time since the start (s)", ylabel="rank", yticks=ranks)
    axes.set_title("Nobody continues until everyone has arrived")
    axes.invert_yaxis()
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=2, frameon=False)
    return figure


def plot_differences(differences: Mapping[str, float]) -> Figure:
    """Draw relative differences of gradients, by case, with the precision of the number formats.

    A case's name begins with its number format, such as ``"float64, equal shares"``.
    """
    figure, axes = plt.subplots(figsize=(7, 2.8))
    for row, (case, value) in enumerate(differences.items()):
        is_rounding = value < ROUNDING * np.finfo(case[:7]).eps
        axes.plot(value, row, "o", color=GREEN if is_rounding else VERMILION)
        axes.annotate(f"{value:.0e}", (value, row), (8, 0), textcoords="offset points", va="center")
    for dtype in ("float64", "float32"):
        precision, words = float(np.finfo(dtype).eps), f"precision of {dtype}"
        axes.axvline(precision, color=QUIET, linestyle="--", linewidth=1)
        above = axes.get_xaxis_transform()
        axes.text(precision, 1.02, words, transform=above, ha="center", color=QUIET)
    axes.set(xscale="log", xlim=(1e-17, 1e2))
    axes.set_yticks(range(len(differences)), list(differences))
    axes.set_ylim(len(differences) - 0.4, -0.6)
    axes.set_xlabel("largest difference / largest entry of the gradient (no unit)")
    return figure


def plot_bytes(sent: Mapping[str, Mapping[int, Sequence[int]]], size: int) -> Figure:
    """Draw the bytes that each rank sent, and those of the busiest one, with their formulas.

    Args:
        sent: for "parameter_server" and "ring": by the number of ranks, the bytes of each rank.
        size: bytes of the vector that is averaged.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    line = np.linspace(2, max(sent["ring"]), 61)
    drawn = {
        "parameter_server": (VERMILION, "s", line - 1, r"$(n-1)\,S$"),
        "ring": (BLUE, "o", 2 * (line - 1) / line, r"$2\,(n-1)/n \cdot S$"),
    }
    for place, (method, (color, marker, vectors, formula)) in enumerate(drawn.items()):
        label = method.replace("_", " ")
        most = max(sent[method])
        megabytes = [count / 1e6 for count in sent[method][most]]
        left.bar(np.arange(most) + (place - 0.5) * 0.4, megabytes, 0.4, color=color, label=label)
        right.plot(line, vectors * size / 1e6, color=color, label=f"{label}: {formula}")
        busiest = [max(counts) / 1e6 for counts in sent[method].values()]
        right.plot(list(sent[method]), busiest, marker, color=color, label=f"{label}, measured")
    left.set(title=f"every rank, n = {most}", xlabel="rank", ylabel="data sent (MB)")
    left.set_xticks(range(most))
    right.set(title="the busiest rank", xlabel="number of ranks n", ylabel="data sent (MB)")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.legend(frameon=False)
    return figure
