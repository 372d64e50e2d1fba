"""Plots of runs: their accuracy and throughput, and how their device was fed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from hvdcourse.launch.result import RunResult
from hvdcourse.plots.palette import BLUE, COLORS, LIGHT_GRAY, ORANGE
from hvdcourse.plots.subplots import subplots
from hvdcourse.training.fed_epoch import FedEpoch

WAITING: dict[str, Any] = {"facecolor": LIGHT_GRAY, "edgecolor": "white"}


def plot_training(runs: Mapping[str, RunResult]) -> Figure:
    """Draw test accuracy by epoch, and throughput after the first epoch, for runs by their name.

    The first epoch is left out of the throughput: in it TensorFlow also builds its graph.
    """
    figure, (left, right) = subplots(1, 2, figsize=(9, 3.4))
    for color, (name, result) in zip(COLORS, runs.items(), strict=False):
        history = result.history
        label = name.replace("\n", " ")
        left.plot(history["epoch"], history["val_accuracy"], "o-", color=color, label=label)
        speeds = history["images_per_second"][1:]
        middle = result.throughput
        spread = [[middle - min(speeds)], [max(speeds) - middle]]
        right.bar(name, middle, yerr=spread, color=color, capsize=6, width=0.6)
        last = max(history["epoch"])
    left.set(xlabel="epoch", ylabel="test accuracy", ylim=(0, 1.02))
    left.xaxis.get_major_locator().set_params(integer=True)
    left.legend(frameon=False, loc="lower right")
    what = f"median of epochs 2 to {last}; whiskers: min and max"
    right.set(ylabel="images per second, all ranks", title=what)
    right.title.set_fontsize(9)
    return figure


def lanes(intervals: np.ndarray) -> list[int]:
    """Return a lane for each (begin, end), sorted by begin, so that none overlap in a lane."""
    free_at: list[float] = []
    chosen = []
    for begin, end in intervals:
        lane = next((n for n, free in enumerate(free_at) if free <= begin), len(free_at))
        free_at[lane : lane + 1] = [end]
        chosen.append(lane)
    return chosen


def draw_feeding(axes: Axes, epoch: FedEpoch, work: str) -> None:
    """Draw one epoch as a time line: the timed ``work`` on the samples, and the device's steps."""
    start = epoch.asked[0]
    times = np.unique(epoch.column(work), axis=0) - start
    times = times[times[:, 0] >= 0]  # a cache delivers times of an earlier epoch
    rows = lanes(times)
    stretches = [(begin, end - begin) for begin, end in times]
    for lane in set(rows):
        bars = [bar for bar, row in zip(stretches, rows, strict=True) if row == lane]
        axes.broken_barh(bars, (lane - 0.4, 0.8), color=ORANGE, linewidth=0)
    device = max(rows, default=0) + 1
    asked, arrived, ended = (
        np.array(moments) - start for moments in (epoch.asked, epoch.arrived, epoch.ended)
    )
    waits = list(zip(asked, arrived - asked, strict=True))
    steps = list(zip(arrived, ended - arrived, strict=True))
    axes.broken_barh(waits, (device - 0.4, 0.8), **WAITING)
    axes.broken_barh(steps, (device - 0.4, 0.8), color=BLUE, edgecolor="white")
    axes.set_yticks([device / 2 - 0.5, device], ["processor", "device"])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(device + 0.6, -0.6)
    axes.spines.left.set_visible(False)


def plot_feeding(epochs: Mapping[str, FedEpoch], work: str, seconds: float) -> Figure:
    """Draw the first seconds of epochs, by their name, as time lines one below the other."""
    size = (9, 1.5 * len(epochs) + 0.8)
    figure, rows = subplots(len(epochs), 1, figsize=size, sharex=True, squeeze=False)
    for axes, (name, epoch) in zip(rows[:, 0], epochs.items(), strict=True):
        draw_feeding(axes, epoch, work)
        axes.set_title(f"{name}: device busy {epoch.busy:.0%}", loc="left", fontsize=10)
    rows[-1, 0].set(xlim=(0, seconds), xlabel="time since the epoch began (s)")
    handles = [
        Patch(facecolor=ORANGE, label="read and decode files"),
        Patch(facecolor=BLUE, label="training step"),
        Patch(label="device waits", **WAITING),
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=3, frameon=False)
    return figure
