"""Sets what the ranks of a training did side by side: what no rank's own output shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from hvdcourse.errors import BadInput
from hvdcourse.launch.result import RankResult, RunResult
from hvdcourse.rank.variables import OBSERVE_VARIABLE

# For ``run(…, environment=COMPARED)``: the ranks note what compare_ranks reads.
COMPARED = {OBSERVE_VARIABLE: "ranks"}
_TITLES = (
    ("",) * 6 + ("first", "last", "", ""),
    ("rank", "images", "repeated", "tests", "steps", "rate", *["weights"] * 2, "loss", "accuracy"),
)
_ROW = "{:>4} {:>6} {:>8} {:>5} {:>5} {:>6} {:>9} {:>9} {:>7} {:>8}"


@dataclass(frozen=True)
class RankSummary:
    """What one rank did. The first epoch is the whole training where no epochs were noted.

    Attributes:
        images: how many training images it had in its first epoch.
        repeated: how many of these another rank had, too.
        tests: how many test images it evaluated in that epoch.
        steps: how often it changed the weights in the whole training.
        rate: the learning rate of its last step.
        first_weights: a checksum of its weights before its first step.
        last_weights: a checksum of its weights before its last step.
        reported: the last metrics that the rank itself reported, by name.
    """

    images: int
    repeated: int
    tests: int
    steps: int
    rate: float
    first_weights: float
    last_weights: float
    reported: Mapping[str, float]

    def cells(self) -> tuple[Any, ...]:
        """Return the row's cells as text."""
        reported = (self.reported.get(name) for name in ("loss", "val_accuracy"))
        loss, accuracy = ("-" if value is None else f"{value:.4f}" for value in reported)
        weights = (f"{value:.4f}" for value in (self.first_weights, self.last_weights))
        counts = (self.images, self.repeated, self.tests, self.steps)
        return (*counts, f"{self.rate:.4g}", *weights, loss, accuracy)


@dataclass(frozen=True, repr=False)
class RankComparison:
    """The ranks of each run, by the run's name; for a run that failed, how it ended."""

    runs: Mapping[str, list[RankSummary] | str]

    def __repr__(self) -> str:
        width = max(map(len, self.runs))
        lines = [f"{'':{width}} {_ROW.format(*titles)}".rstrip() for titles in _TITLES]
        for name, ranks in self.runs.items():
            if isinstance(ranks, str):
                lines.append(f"{name:{width}}    {ranks}")
                continue
            rows = (_ROW.format(rank, *summary.cells()) for rank, summary in enumerate(ranks))
            names = chain([name], [""] * len(ranks))
            lines += [f"{label:{width}} {row}" for label, row in zip(names, rows, strict=False)]
        return "\n".join(lines)


def compare_ranks(runs: RunResult | Mapping[str, RunResult]) -> RankComparison:
    """Compare what the ranks of a training did: samples, learning rates, weights, metrics.

    Args:
        runs: one run, or several by name, each made with ``environment=COMPARED``.

    Returns:
        A table of a row for each rank; the last expression of a cell shows it.

    Raises:
        BadInput: there is no run, or its ranks noted no training.
    """
    named = {"run": runs} if isinstance(runs, RunResult) else dict(runs)
    if not named:
        raise BadInput("there is no run to compare; give it a run, or several by name")
    return RankComparison({name: _summaries(name, result) for name, result in named.items()})


def _summaries(name: str, result: RunResult) -> list[RankSummary] | str:
    failed = result.first_failed
    if failed is not None:
        return f"rank {failed.rank}: {failed.describe_end()}"
    if not result.ok:
        return f"the run was ended: {result.reason}"
    own = [set(_samples(rank, "trained")) for rank in result.ranks]
    return [_summary(name, rank, own[: rank.rank] + own[rank.rank + 1 :]) for rank in result.ranks]


def _summary(name: str, rank: RankResult, others: list[set[float]]) -> RankSummary:
    updates = [entry["value"] for entry in rank.evidence if entry.get("note") == "update"]
    if not updates:
        raise BadInput(
            f"rank {rank.rank} of {name!r} noted no training step; make the run with "
            "environment=COMPARED, of a script that trains a Keras model"
        )
    images = set(_samples(rank, "trained"))
    return RankSummary(
        images=len(images),
        repeated=len(images & set().union(*others)),
        tests=len(set(_samples(rank, "evaluated"))),
        steps=len(updates),
        rate=float(updates[-1]["rate"]),
        first_weights=_checksum(updates[0]["weights"]),
        last_weights=_checksum(updates[-1]["weights"]),
        reported=next((row for row in reversed(rank.metrics) if row.get("done")), {}),
    )


def _samples(rank: RankResult, note: str) -> list[float]:
    """Return the identities of the samples that a rank noted, up to its second epoch."""
    epochs = [place for place, entry in enumerate(rank.evidence) if entry.get("note") == "epoch"]
    end = epochs[1] if len(epochs) > 1 else None
    batches = (entry["value"] for entry in rank.evidence[:end] if entry.get("note") == note)
    return list(chain.from_iterable(batches))


def _checksum(fingerprints: list[list[float]]) -> float:
    """Return one number for all weights: the sum of a random projection of each variable."""
    return float(sum(row[0] for row in fingerprints))
