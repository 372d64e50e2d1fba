"""Plots of a study, made from its records and from nothing else."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hvdcourse.plots.palette import BLUE, COLOURS, DARK_GREY, GREY, LIGHT_GREY, VERMILION

Run = dict[str, Any]
LABELS = {
    "accuracy": "training accuracy",
    "test_accuracy": "test accuracy",
    "loss": "training loss",
    "test_loss": "test loss",
}


def by_condition(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Return the runs of each condition, in the order in which the conditions come."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run["condition"], []).append(run)
    return groups


def column(run: Run, name: str) -> np.ndarray:
    """Return one figure of every epoch; nan where a run had diverged."""
    return np.array([np.nan if row[name] is None else row[name] for row in run["epochs"]])


def draw_curves(axes: Axes, runs: Iterable[Run], value: str, x: str) -> None:
    """Draw each condition's mean over its seeds, and a band from the lowest to the highest."""
    styles = itertools.cycle(itertools.product(("o-", "s--", "^:"), COLOURS))
    for (line, colour), (name, group) in zip(styles, by_condition(runs).items(), strict=False):
        positions = column(group[0], x)
        rows = np.array([column(run, value) for run in group])
        axes.plot(
            positions, rows.mean(axis=0), line, color=colour, markersize=3,
            label=f"{name} ({len(group)} {'seed' if len(group) == 1 else 'seeds'})",
        )  # fmt: skip
        axes.fill_between(positions, rows.min(axis=0), rows.max(axis=0), color=colour, alpha=0.15)
    axes.set(xlabel=x, ylabel=LABELS.get(value, value))
    axes.spines[["top", "right"]].set_visible(False)


def plot_curves(
    runs: Sequence[Run], panels: Sequence[tuple[str, str]] = (("test_accuracy", "epoch"),)
) -> Figure:
    """Draw one panel for each (figure, ``"epoch"`` or ``"step"``): mean and band over the seeds."""
    figure, row = plt.subplots(
        1, len(panels), figsize=(4.6 * len(panels), 3.4), squeeze=False, layout="constrained"
    )
    for axes, (value, x) in zip(row[0], panels, strict=True):
        draw_curves(axes, runs, value, x)
        if "accuracy" in value:
            axes.set_ylim(0, 1.02)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    handles, labels = row[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def steps_to_target(runs: Iterable[Run]) -> dict[int, list[int]]:
    """Return the steps that each run needed to its target, by global batch size.

    Runs that did not reach it are left out; a batch size that no run reached it with has none.
    """
    by_batch_size: dict[int, list[int]] = {}
    for run in runs:
        steps = by_batch_size.setdefault(run["global_batch_size"], [])
        if run.get("steps_to_target") is not None:
            steps.append(run["steps_to_target"])
    return dict(sorted(by_batch_size.items()))


def plot_steps_to_target(
    runs: Sequence[Run], target: float, noise_scales: Mapping[str, float]
) -> Figure:
    """Draw steps to a target against the global batch size, with the line of perfect scaling.

    ``noise_scales`` are drawn as upright lines, in images, under their names.
    """
    steps = {batch: counts for batch, counts in steps_to_target(runs).items() if counts}
    batches = np.array(list(steps))
    medians = np.array([np.median(counts) for counts in steps.values()])
    reach = [[m - min(c), max(c) - m] for m, c in zip(medians, steps.values(), strict=True)]
    figure, axes = plt.subplots(figsize=(6, 4.4), layout="constrained")
    axes.errorbar(
        batches, medians, yerr=np.array(reach).T, fmt="o-", color=BLUE, capsize=4,
        label="measured: median, least and most",
    )  # fmt: skip
    axes.plot(
        batches, medians[0] * batches[0] / batches, "--", color=DARK_GREY,
        label="perfect scaling: half for twice the batch",
    )  # fmt: skip
    for colour, (name, scale) in zip(COLOURS[1:], noise_scales.items(), strict=False):
        axes.axvline(scale, color=colour, linewidth=1.5, linestyle=":", label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_ylim(medians.min() / 4, None)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set(xlabel="global batch size (images)", ylabel=f"steps to {target:.0%} on the test set")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def plot_rates(rows: Mapping[str, tuple[Sequence[float], Sequence[float]]], steps: int) -> Figure:
    """Draw the learning rate of each step, as it was and as it should be, one panel for each name.

    Args:
        rows: by name, the rates that were applied and those that should have been.
        steps: steps of an epoch, to mark where one ends.
    """
    figure, axes = plt.subplots(
        1, len(rows), figsize=(3.2 * len(rows), 2.9), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for panel, (name, (applied, expected)) in zip(axes[0], rows.items(), strict=True):
        for end in range(steps, len(applied), steps):
            panel.axvline(end, color=LIGHT_GREY, linewidth=0.8, zorder=0)
        panel.plot(expected, color=GREY, linewidth=3.5, label="as it should be")
        panel.plot(applied, color=VERMILION, linewidth=1.5, label="as it was")
        panel.set_title(name, fontsize=10)
        panel.set_xlabel("step")
        panel.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set(ylabel="learning rate", ylim=(0, None))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def plot_trust_ratios(run: Run) -> Figure:
    """Draw LAMB's trust ratio of every layer by step; a layer's bias is left out."""
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    ratios = {name: r for name, r in run["trust_ratios"].items() if "kernel" in name}
    for number, (name, values) in enumerate(ratios.items()):
        shown = np.array([np.nan if value is None else value for value in values])
        colour = plt.get_cmap("viridis")(number / max(1, len(ratios) - 1) * 0.9)
        axes.plot(range(1, len(shown) + 1), shown, color=colour, label=name.split("/")[0])
    axes.set(xlabel="step", ylabel="trust ratio ‖x‖ / ‖u‖", yscale="log")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False, fontsize=8, title="first to last")
    return figure


def plot_slices(
    slices: Mapping[str, Sequence[Sequence[float]]], distances: Sequence[float]
) -> Figure:
    """Draw the loss along random directions from each solution: one thin line for each direction.

    Args:
        slices: by name, losses of shape (directions, distances).
        distances: in parts of each filter's length.
    """
    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for colour, (name, rows) in zip(COLOURS, slices.items(), strict=False):
        for row in rows:
            axes.plot(distances, row, color=colour, linewidth=0.7, alpha=0.6)
        axes.plot(distances, np.mean(rows, axis=0), color=colour, linewidth=2.2, label=name)
    axes.set(xlabel="distance, in parts of each filter's length", ylabel="training loss")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure
