"""Plots of the challenge: scores side by side, and how a program classified the test images."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hvdcourse.plots.palette import BLUE, DARK_GRAY, GREEN, INK, ORANGE, VERMILION
from hvdcourse.plots.subplots import subplots

# Parts that measure something; all others ask whether the program is right.
MEASURED = {"throughput": ORANGE, "accuracy": GREEN}


def plot_scores(scores: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw a bar for each score, by its name: points of its parts, first those for being right."""
    figure, axes = subplots(figsize=(8, 0.5 * len(scores) + 1.3))
    names = list(scores)
    right = [sum(points for part, points in of.items() if part not in MEASURED)
             for of in scores.values()]  # fmt: skip
    axes.barh(names, right, color=BLUE, height=0.6, label="right on many ranks")
    left = np.array(right)
    for part, color in MEASURED.items():
        points = np.array([of.get(part, 0) for of in scores.values()])
        axes.barh(names, points, left=left, color=color, height=0.6, label=part)
        left = left + points
    for place, total in enumerate(left):
        axes.text(total + 1, place, f"{round(total, 1):g}", va="center", color=INK)
    axes.invert_yaxis()
    axes.set(xlim=(0, 108), xlabel="points", xticks=range(0, 101, 20))
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def plot_report(
    painters: Sequence[str],
    confusion: Sequence[Sequence[int]],
    history: Mapping[str, Sequence[float]],
) -> Figure:
    """Draw a confusion matrix, true painters downwards, and test accuracy and loss by epoch."""
    figure = plt.figure(figsize=(10, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    draw_confusion(left, painters, np.array(confusion))
    if history.get("val_accuracy"):
        draw_curves(right, history)
    else:
        right.axis("off")
        right.text(0.5, 0.5, "no learning curve:\nno metrics were reported", ha="center")
    return figure


def draw_confusion(axes: Axes, painters: Sequence[str], counts: np.ndarray) -> None:
    """Draw each row's shares as colors, and the counts as numbers; zeros stay empty."""
    shares = counts / counts.sum(axis=1, keepdims=True).clip(1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(counts):
        if count:
            color = "white" if shares[row, column] > 0.5 else INK
            axes.text(column, row, str(count), ha="center", va="center", fontsize=7.5, color=color)
    places = range(len(painters))
    axes.set_xticks(places, painters, rotation=45, ha="right", fontsize=8)
    axes.set_yticks(places, painters, fontsize=8)
    axes.set(xlabel="named by the network", ylabel="painted by")
    axes.set_title("color: share of the row", fontsize=9)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def draw_curves(axes: Axes, history: Mapping[str, Sequence[float]]) -> None:
    """Draw the test accuracy, and the training loss at its own scale, by epoch."""
    epochs = range(1, len(history["val_accuracy"]) + 1)
    axes.plot(epochs, history["val_accuracy"], "o-", color=BLUE, markersize=4)
    axes.set(xlabel="epoch", ylim=(0, 1.02))
    axes.set_ylabel("test accuracy, all images", color=BLUE)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=DARK_GRAY, alpha=0.15)
    if history.get("loss"):
        loss = axes.twinx()
        loss.plot(epochs, history["loss"], "s--", color=VERMILION, markersize=3)
        loss.set_ylabel("training loss", color=VERMILION)
        loss.set_ylim(0, None)
        loss.spines[["top", "left"]].set_visible(False)
