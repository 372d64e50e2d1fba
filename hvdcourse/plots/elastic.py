"""An elastic job over time: how training went on, and what each change of its workers cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hvdcourse.launch.result import RunResult
from hvdcourse.plots.palette import COLORS, INK, LIGHT_GRAY
from hvdcourse.plots.subplots import subplots

# After a change of the workers: in so many epochs the lowest accuracy is looked for.
EPOCHS_AFTER = 5


@dataclass(frozen=True)
class Change:
    """One change of the workers: what it was, when nobody trained, and the accuracy around it.

    Times are in seconds from the end of the first epoch. ``gap`` is from the end of the last epoch
    with the old workers to the end of the first one with the new workers.
    """

    what: str
    gap: tuple[float, float]
    before: float
    lowest_after: float

    @property
    def seconds(self) -> float:
        """How long the gap is."""
        return self.gap[1] - self.gap[0]

    def __str__(self) -> str:
        return (
            f"{self.what:15} {self.seconds:5.1f} s between two epochs; test accuracy "
            f"{self.before:.3f} before, {self.lowest_after:.3f} at its lowest in the next "
            f"{EPOCHS_AFTER} epochs"
        )


def reports_of(result: RunResult) -> list[tuple[str, dict[str, Any]]]:
    """Return what happened to the job and when, in order; times from the first epoch on."""
    evidence = result.ranks[0].evidence
    lines = [line for line in evidence if line.get("report") in ("epoch", "killed", "added")]
    epochs = [line["value"] for line in lines if line["report"] == "epoch"]
    start = min(epoch["time"] for epoch in epochs if epoch["rank"] == 0)
    return [
        (line["report"], {**line["value"], "time": line["value"]["time"] - start}) for line in lines
    ]


def epochs_of(result: RunResult) -> list[dict[str, Any]]:
    """Return rank 0's epochs."""
    return [value for name, value in reports_of(result) if name == "epoch" and value["rank"] == 0]


def changes(result: RunResult) -> list[Change]:
    """Return the changes of the workers that the plan made and that the training went on after."""
    epochs = epochs_of(result)
    all_changes = []
    for name, value in reports_of(result):
        if name not in ("killed", "added"):
            continue
        size = max((e for e in epochs if e["time"] <= value["time"]), key=itemgetter("time"))[
            "size"
        ]
        after = [e for e in epochs if e["time"] > value["time"] and e["size"] != size]
        if not after:
            continue
        last = max((e for e in epochs if e["time"] < after[0]["time"]), key=itemgetter("time"))
        what = f"rank {value['ranks'][0]} killed" if name == "killed" else "a host added"
        lowest = min(epoch["test_accuracy"] for epoch in after[:EPOCHS_AFTER])
        gap = last["time"], after[0]["time"]
        all_changes.append(Change(what, gap, last["test_accuracy"], lowest))
    return all_changes


def plot_elastic(result: RunResult) -> Figure:
    """Draw rank 0's mean loss and test accuracy over time, colored by the number of workers.

    Where the workers changed, the time in which no epoch ended is shaded, with its seconds.
    """
    epochs, all_changes = epochs_of(result), changes(result)
    figure, (upper, lower) = subplots(2, 1, figsize=(8.5, 4.8), sharex=True)
    for axes, name in ((upper, "loss"), (lower, "test_accuracy")):
        for change in all_changes:
            axes.axvspan(*change.gap, color=LIGHT_GRAY, linewidth=0, zorder=0)
        draw_stretches(axes, epochs, name)
    upper.set(ylabel="loss, mean of the epoch", ylim=(0, 1.45 * max(e["loss"] for e in epochs)))
    name_changes(upper, all_changes)
    lower.set(xlabel="seconds since the first epoch ended", ylim=(0, 1.02))
    lower.set_ylabel("test accuracy")
    lower.legend(frameon=False, loc="lower right")
    return figure


def draw_stretches(axes: Axes, epochs: Sequence[dict[str, Any]], name: str) -> None:
    """Draw a metric as a line for each stretch with the same workers: none across a gap."""
    named = set()
    for size, group in groupby(epochs, key=itemgetter("size")):
        stretch = list(group)
        label = "1 worker" if size == 1 else f"{size} workers"
        axes.plot(
            [epoch["time"] for epoch in stretch], [epoch[name] for epoch in stretch], "o-",
            color=COLORS[(size - 1) % len(COLORS)], markersize=4, linewidth=1.2,
            label=None if label in named else label,
        )  # fmt: skip
        named.add(label)


def name_changes(axes: Axes, all_changes: Sequence[Change]) -> None:
    """Write what happened, and the seconds of the gap, inside of the axes."""
    for number, change in enumerate(all_changes):
        # At two heights: gaps that follow each other closely would share their words' place.
        axes.annotate(
            f"{change.what}: {change.seconds:.1f} s",
            (change.gap[0], 0.97 - 0.12 * (number % 2)),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            va="top",
            fontsize=9,
            color=INK,
        )
