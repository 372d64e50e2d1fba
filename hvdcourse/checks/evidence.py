"""What a check may look at: the findings and messages of real ranks, and how to judge them."""

import reprlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import dropwhile
from typing import Any

import numpy as np

from hvdcourse.launch.result import RankResult, RunResult


class Unmet(Exception):
    """A step does not do yet what it must.

    Args:
        expected: what must be true, in one sentence.
        seen: what was seen instead, one text a rank.
    """

    def __init__(self, expected: str, seen: list[str]):
        super().__init__(expected)
        self.expected, self.seen = expected, seen


class NotJudged(Unmet):
    """A step cannot be judged, since something that it builds on is wrong; told of once."""


# By number of dimensions.
_KINDS = ("a number", "a list of numbers", "a table of numbers")


class ObservedRank:
    """What one rank reported and communicated, in the order in which it happened."""

    def __init__(self, result: RankResult):
        self.rank = result.rank
        self.entries = result.evidence
        self.output = result.output

    def all_reported(self, name: str) -> list[Any]:
        """Return every value that the rank reported under this name.

        Raises:
            Unmet: it reported none. No evidence is a failure.
        """
        values = [entry["value"] for entry in self.entries if entry.get("report") == name]
        if not values:
            raise Unmet(f"every rank reports {name!r}", [f"rank {self.rank} reported no {name!r}"])
        return values

    def reported(self, name: str) -> Any:
        """Return the last value reported under this name. Raises Unmet without one."""
        return self.all_reported(name)[-1]

    def all_numbers(self, name: str, dimensions: int) -> list[np.ndarray]:
        """Return every value that the rank reported under this name, as arrays of float64.

        Raises:
            Unmet: it reported none, or something that is no numbers in so many dimensions.
        """
        arrays = []
        for value in self.all_reported(name):
            try:
                array = np.array(value, np.float64)
            except (TypeError, ValueError):
                array = None
            if array is None or array.ndim != dimensions:
                raise Unmet(
                    f"every rank reports {name!r} as {_KINDS[dimensions]}",
                    [f"rank {self.rank}: reported {reprlib.repr(value)}"],
                )
            arrays.append(array)
        return arrays

    def report_in_words(self) -> str:
        """Return what the rank reported last under each name, in short."""
        last = {entry["report"]: entry["value"] for entry in self.entries if "report" in entry}
        return ", ".join(f"{name} = {reprlib.repr(value)[:60]}" for name, value in last.items())

    def notes(self, name: str, since: str | None = None) -> list[Any]:
        """Return the values of all notes that were taken of the rank under this name.

        Args:
            name: of the notes.
            since: leave out those before the first note of this other name.
        """
        noted = [entry for entry in self.entries if "note" in entry]
        if since is not None:
            noted = list(dropwhile(lambda entry: entry["note"] != since, noted))
        return [entry["value"] for entry in noted if entry["note"] == name]

    def allreduced_bytes(self) -> int:
        """Return how many bytes the rank has put into allreduces; one in a graph counts once."""
        return sum(
            entry["bytes"] for entry in self.entries if entry.get("collective") == "allreduce"
        )

    def broadcast_bytes(self) -> dict[int, int]:
        """Return how many bytes each root has sent in the broadcasts that the rank took part in."""
        sent: Counter[int] = Counter()
        for entry in self.entries:
            if entry.get("collective") == "broadcast":
                sent[entry["root"]] += entry["bytes"]
        return sent

    def communicated(
        self, since: str, before: str, kind: str = "collective"
    ) -> list[list[dict[str, Any]]]:
        """Return what was communicated between two reports, once for every time they came.

        Args:
            since: the name of the first report.
            before: the name of the second.
            kind: ``"collective"`` or ``"message"``.
        """
        groups: list[list[dict[str, Any]]] = []
        current: list[dict[str, Any]] = []
        for entry in self.entries:
            if entry.get("report") == before:
                groups.append(list(current))
            if entry.get("report") == since:
                current = []
            elif kind in entry:
                current.append(entry)
        return groups


class ObservedRun:
    """One run of an exercise: its ranks, and the arguments that the check chose for it.

    ``earlier`` are the runs of the same check that came before it. ``hosts`` has the number of
    ranks or workers on each host; all are on one without it. ``disturbed`` says that workers were
    killed or added.
    """

    def __init__(
        self,
        result: RunResult,
        arguments: dict[str, Any],
        earlier: Sequence["ObservedRun"] = (),
        hosts: tuple[int, ...] = (),
        disturbed: bool = False,
    ):
        self.earlier = list(earlier)
        self.result = result
        self.ranks = [ObservedRank(rank) for rank in result.ranks]
        self.hosts = hosts or (result.np,)
        self.np = sum(self.hosts)
        self.disturbed = disturbed
        self.arguments = arguments

    @property
    def local_ranks(self) -> list[int]:
        """The local rank of each rank."""
        return [local_rank for ranks in self.hosts for local_rank in range(ranks)]

    def reported(self, name: str) -> list[Any]:
        """Return each rank's last value under this name. Raises Unmet where one has none."""
        return [rank.reported(name) for rank in self.ranks]

    def numbers(self, name: str) -> list[np.ndarray]:
        """Return each rank's last value under this name, a list of numbers, as an array.

        Raises Unmet where a rank reported none, or something else than numbers.
        """
        return [rank.all_numbers(name, 1)[-1] for rank in self.ranks]


def counted(count: float, noun: str) -> str:
    """Return a number of things: "1 line", "2 lines", "2.5 lines"."""
    return f"{count:.9g} {noun}" if count == 1 else f"{count:.9g} {noun}s"


def named_ranks(ranks: Sequence[int]) -> str:
    """Return ranks by their numbers: "rank 0", "ranks 0 and 1", "ranks 0, 1 and 2"."""
    *others, last = map(str, ranks)
    return f"ranks {', '.join(others)} and {last}" if others else f"rank {last}"


def percent(share: float) -> str:
    """Return a share as text: 0.0123 as "1.2 %", 1.234 as "123 %", and what only rounds as 0."""
    if share < 1e-4:
        return "0 %"
    return f"{100 * share:.2g} %" if share < 0.095 else f"{100 * share:.0f} %"


def demand(expected: str, met: Iterable[bool], lines: Iterable[Any]) -> None:
    """Raise Unmet unless ``met`` holds for every rank; each rank's line says what it showed."""
    if not all(met):
        raise Unmet(expected, [f"rank {rank}: {line}" for rank, line in enumerate(lines)])


def demand_of_run(expected: str, met: bool, *lines: str) -> None:
    """Raise Unmet unless ``met`` holds for the run as a whole; the lines say what it showed."""
    if not met:
        raise Unmet(expected, list(lines))
