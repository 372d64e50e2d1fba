"""Plots of a study, made from its records and from nothing else."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from hvdcourse.plots.palette import BLUE, COLORS, DARK_GRAY, GRAY, LIGHT_GRAY, VERMILION
from hvdcourse.plots.subplots import subplots

Run = dict[str, Any]
# Of runs whose lengths are so far apart, the short ones would be a clot at the axis.
MUCH_LONGER = 10
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
    return np.array([row[name] for row in run["epochs"]], float)


def label_of(value: str, runs: Sequence[Run]) -> str:
    """Return what a value of these runs is called; a study may test on images held out."""
    if value == "test_accuracy" and any(run["settings"].get("hold_out") for run in runs):
        return "accuracy on images held out"
    return LABELS.get(value, value)


def draw_curves(axes: Axes, runs: Sequence[Run], value: str, x: str) -> None:
    """Draw each condition's mean over its seeds, and a band from the lowest to the highest."""
    styles = itertools.cycle(itertools.product(("o-", "s--", "^:"), COLORS))
    for (line, color), (name, group) in zip(styles, by_condition(runs).items(), strict=False):
        positions = column(group[0], x)
        rows = np.array([column(run, value) for run in group])
        axes.plot(
            positions, rows.mean(axis=0), line, color=color, markersize=3,
            label=f"{name} ({len(group)} {'seed' if len(group) == 1 else 'seeds'})",
        )  # fmt: skip
        axes.fill_between(positions, rows.min(axis=0), rows.max(axis=0), color=color, alpha=0.15)
    axes.set(xlabel=x, ylabel=label_of(value, runs))


def plot_curves(
    runs: Sequence[Run], panels: Sequence[tuple[str, str]] = (("test_accuracy", "epoch"),)
) -> Figure:
    """Draw accuracy or loss by epoch or by step: each condition's mean, and a band over its seeds.

    Args:
        runs: the records of a study.
        panels: what to draw, and against what: ``"epoch"`` or ``"step"``; in a logarithmic scale
            where some runs are much longer than others.
    """
    figure, row = subplots(1, len(panels), figsize=(4.6 * len(panels), 3.4), squeeze=False)
    for axes, (value, x) in zip(row[0], panels, strict=True):
        draw_curves(axes, runs, value, x)
        if "accuracy" in value:
            axes.set_ylim(0, 1.02)
        ends = [line.get_xdata()[-1] for line in axes.lines]
        if max(ends) > MUCH_LONGER * min(ends):
            axes.set_xscale("log")
        else:
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    handles, labels = row[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def plot_accuracies(runs: Sequence[Run], baseline: str | None = None) -> Figure:
    """Draw accuracies after the last epoch by condition: a dot for each seed, a mark at the mean.

    Blue is on the test images, gray on those trained on. A dashed line goes through the mean test
    accuracy of the condition named ``baseline``.
    """
    groups = by_condition(runs)
    figure, axes = subplots(figsize=(8, 0.8 + 0.3 * len(groups)))
    kinds = (("accuracy", GRAY, 0.16), ("test_accuracy", BLUE, -0.1))
    for row, group in enumerate(groups.values()):
        for value, color, shift in kinds:
            ends = [column(run, value)[-1] for run in group]
            axes.plot(ends, [row + shift] * len(ends), "o", color=color, markersize=5, alpha=0.6)
            axes.plot(
                np.mean(ends), row + shift, "|", color=color, markersize=13, markeredgewidth=2
            )
    if baseline is not None:
        mean = np.mean([column(run, "test_accuracy")[-1] for run in groups[baseline]])
        axes.axvline(mean, color=BLUE, linewidth=1, linestyle="--", zorder=0)
    axes.set_yticks(range(len(groups)), list(groups))
    axes.set(ylim=(len(groups) - 0.5, -0.5), xlim=(0, 1.02), xlabel="accuracy after the last epoch")
    axes.grid(axis="y", color=LIGHT_GRAY, linewidth=0.6)
    handles = [
        Line2D([], [], marker="o", linestyle="", color=color, label=label_of(value, runs))
        for value, color, _ in reversed(kinds)
    ]
    if baseline is not None:
        label = f"mean of {baseline}"
        handles.append(Line2D([], [], color=BLUE, linewidth=1, linestyle="--", label=label))
    figure.legend(handles=handles, loc="outside upper right", ncols=3, frameon=False)
    return figure


def plot_search(panels: Mapping[str, Mapping[str, Mapping[float, Sequence[float]]]]) -> Figure:
    """Draw accuracy against the learning rate: a dot for each seed, a line through the means.

    Args:
        panels: by title and condition, the accuracy of each seed by learning rate.
    """
    figure, row = subplots(
        1, len(panels), figsize=(3.2 * len(panels), 3.3), sharey=True, squeeze=False
    )
    for axes, (title, conditions) in zip(row[0], panels.items(), strict=True):
        for color, (name, accuracies) in zip(COLORS, conditions.items(), strict=False):
            rates = sorted(accuracies)
            axes.plot(rates, [np.mean(accuracies[rate]) for rate in rates], color=color, label=name)
            for rate in rates:
                seeds = accuracies[rate]
                axes.plot([rate] * len(seeds), seeds, "o", color=color, markersize=5, alpha=0.6)
        axes.set(xscale="log", xlabel="learning rate", title=title, ylim=(0, 1.02))
        axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
        axes.minorticks_off()
    row[0, 0].set_ylabel("accuracy on images held out")
    handles, labels = row[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def steps_to_target(runs: Iterable[Run]) -> dict[int, list[int | None]]:
    """Return the steps that each run needed to its target, by global batch size; None for never."""
    by_batch_size: dict[int, list[int | None]] = {}
    for run in runs:
        by_batch_size.setdefault(run["global_batch_size"], []).append(run["steps_to_target"])
    return dict(sorted(by_batch_size.items()))


def plot_steps_to_target(
    runs: Sequence[Run],
    target: float,
    law: Callable[[np.ndarray], np.ndarray],
    critical_batch: float,
    noise_scales: Mapping[str, tuple[float, float]],
) -> Figure:
    """Draw steps to a target against the global batch size, and the law that was fitted to them.

    Args:
        runs: of one or more batch sizes. One that never came to the target is an arrow at the top.
        target: the test accuracy that they look for.
        law: steps for an array of batch sizes.
        critical_batch: the law's B_crit, in images: a dotted line.
        noise_scales: the lowest and the highest estimate, in images, by name: a band for each.
    """
    measured = steps_to_target(runs)
    batches = np.geomspace(min(measured), max(measured), 50)
    top = 1.5 * max(count for counts in measured.values() for count in counts if count)
    figure, axes = subplots(figsize=(7, 4.2))
    for color, (name, (low, high)) in zip(COLORS[1:], noise_scales.items(), strict=False):
        axes.axvspan(low, high, color=color, alpha=0.15, linewidth=0, label=name)
    axes.plot(batches, law(batches), color=BLUE, label=r"fitted: $S_{min}\,(1 + B_{crit} / B)$")
    label = r"fitted: $B_{crit}$"
    axes.axvline(critical_batch, color=DARK_GRAY, linestyle=":", label=label)
    start = law(batches[:1])[0] * batches[0]
    axes.plot(batches, start / batches, "--", color=GRAY, label="perfect scaling")
    for batch, counts in measured.items():
        reached = [count for count in counts if count is not None]
        axes.plot([batch] * len(reached), reached, "o", color=BLUE, markersize=5, alpha=0.6)
        if missed := len(counts) - len(reached):
            axes.plot(batch, top, "^", color=VERMILION, markersize=8)
            axes.annotate(
                f"{missed} of {len(counts)}\nnever", (batch, top), (0, -7), ha="center", va="top",
                textcoords="offset points", color=VERMILION, fontsize=9,
            )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    # The line of perfect scaling may leave the plot: nothing was measured down there.
    left = min([min(measured) / 2.2, *(0.9 * low for low, _ in noise_scales.values())])
    axes.set(xlim=(left, 1.3 * max(measured)), ylim=(min(law(batches)) / 3, None))
    axes.set_xticks(list(measured), [str(batch) for batch in measured])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set(xlabel="global batch size (images)", ylabel=f"steps to {target:.0%} on the test set")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def plot_gradient_norms(norms: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the length of each block's gradient, from the first block to the last, by network."""
    figure, axes = subplots(figsize=(5.4, 3.2))
    for color, (name, lengths) in zip((VERMILION, BLUE), norms.items(), strict=False):
        axes.plot(range(1, len(lengths) + 1), lengths, "o-", color=color, label=name)
    axes.set(
        xlabel="block, from the first to the last", ylabel="length of the gradient", ylim=(0, None)
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False)
    return figure


def plot_rates(rows: Mapping[str, tuple[Sequence[float], Sequence[float]]], steps: int) -> Figure:
    """Draw the learning rate of each step, as it was and as it should be, one panel for each name.

    Args:
        rows: by name, the rates that were applied and those that should have been.
        steps: steps of an epoch, to mark where one ends.
    """
    figure, axes = subplots(
        1, len(rows), figsize=(2.8 * len(rows), 2.9), sharey=True, squeeze=False
    )
    for panel, (name, (applied, expected)) in zip(axes[0], rows.items(), strict=True):
        for end in range(steps, len(applied), steps):
            panel.axvline(end, color=LIGHT_GRAY, linewidth=0.8, zorder=0)
        panel.plot(expected, color=GRAY, linewidth=3.5, label="as it should be")
        panel.plot(applied, color=VERMILION, linewidth=1.5, label="as it was")
        panel.set_title(name, fontsize=10)
        panel.set_xlabel("step")
    axes[0, 0].set(ylabel="learning rate", ylim=(0, None))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def plot_trust_ratios(run: Run) -> Figure:
    """Draw LAMB's trust ratio of every layer by step; a layer's bias is left out."""
    figure, axes = subplots(figsize=(7, 3.6))
    ratios = {name: r for name, r in run["trust_ratios"].items() if "kernel" in name}
    kinds: Counter[str] = Counter()
    for number, (name, values) in enumerate(ratios.items()):
        kind = "convolution" if name.startswith("conv") else "dense"
        kinds[kind] += 1
        color = plt.get_cmap("viridis")(number / max(1, len(ratios) - 1) * 0.9)
        steps = range(1, len(values) + 1)
        axes.plot(steps, np.array(values, float), color=color, label=f"{kind} {kinds[kind]}")
    axes.set(xlabel="step", ylabel="trust ratio ‖x‖ / ‖u‖", yscale="log")
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
    figure, axes = subplots(figsize=(6, 3.4))
    for color, (name, rows) in zip(COLORS, slices.items(), strict=False):
        for row in rows:
            axes.plot(distances, row, color=color, linewidth=0.7, alpha=0.6)
        axes.plot(distances, np.mean(rows, axis=0), color=color, linewidth=2.2, label=name)
    axes.plot([], [], color=GRAY, linewidth=0.7, label="thin: one direction of one seed")
    axes.set(xlabel="distance, in parts of each filter's length", ylabel="training loss")
    axes.set_yscale("log")
    axes.legend(frameon=False)
    return figure
