"""What came of a run: the end of every rank, its output, and which failure came first."""

import math
import re
import signal
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from hvdcourse.launch.stacks import Position

# A rank that fails with one of these was told of another rank's failure.
CONSEQUENCES = ("HorovodInternalError", "has been shut down", "Connection closed by peer")
LAST_ERROR = "The last error of a worker:"
# How Horovod's elastic launcher marks what a worker prints to stderr.
_OF_WORKER = re.compile(r"\[\d+\]<stderr>:")
_STATUS_OF_REASON = {"time limit": 124, "standstill": 124, "interrupted": 130}


@dataclass
class RankResult:
    """The end of one rank. ``status`` is None for a rank that the launcher had to end."""

    rank: int
    status: int | None = None
    error: dict[str, str] | None = None
    ended_at: float = math.inf
    position: Position | None = None
    output: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    evidence: list[dict[str, Any]] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether the rank ended by itself, and badly."""
        return self.status not in (0, None)

    @property
    def is_consequence(self) -> bool:
        """Whether the rank failed only because another one had failed."""
        text = f"{self.error['type']} {self.error['message']}" if self.error else ""
        return any(sign in text for sign in CONSEQUENCES)

    def describe_end(self) -> str:
        """Return in words how the rank ended."""
        if self.error:
            return f"{self.error['type']}: {self.error['message']}"
        if self.status is None:
            return "did not end by itself"
        if self.status < 0:
            return f"was killed by {signal.Signals(-self.status).name}"
        return f"ended with exit status {self.status}"

    def describe_position(self) -> str:
        """Return in words where in its script the rank stood."""
        if self.position:
            return f"was {self.position}"
        return "had ended" if self.status is not None else "was not in the script any more, or yet"


@dataclass
class RunResult:
    """What came of a run of ``np`` ranks.

    ``reason`` is ``"ended"`` where every rank ended by itself, else ``"failed"``,
    ``"time limit"``, ``"standstill"``, ``"interrupted"``, ``"the launcher was killed"`` or, with
    its traceback in ``launcher_log``, ``"the launcher failed"``. ``stood_still`` is for how many
    seconds no rank had computed or printed anything in the end. The only rank of an ``elastic`` job
    is Horovod's launcher.
    """

    command: str
    np: int
    reason: str
    timeout: float
    stood_still: float
    ranks: list[RankResult]
    launcher_output: list[str]
    launcher_log: str = ""
    elastic: bool = False

    @property
    def ok(self) -> bool:
        """Whether every rank ended by itself with exit status 0."""
        return self.reason == "ended" and all(rank.status == 0 for rank in self.ranks)

    @property
    def history(self) -> dict[str, list[Any]]:
        """Rank 0's metrics by name, one entry an epoch."""
        rows = [row for row in self.ranks[0].metrics if row.get("done")]
        names = dict.fromkeys(name for row in rows for name in row if name != "done")
        return {name: [row.get(name) for row in rows] for name in names}

    @property
    def throughput(self) -> float:
        """Images per second of all ranks, the median over the epochs from the second on.

        In the first epoch TensorFlow also builds its graph.
        """
        return median(self.history["images_per_second"][1:])

    @property
    def output(self) -> list[list[str]]:
        """What each rank printed to stdout, line by line."""
        return [rank.output for rank in self.ranks]

    @property
    def exit_status(self) -> int:
        """The status that a shell would see: 0, the first failure's, 124 at a limit, or 130."""
        if self.ok:
            return 0
        if self.reason in _STATUS_OF_REASON:
            return _STATUS_OF_REASON[self.reason]
        first = self.first_failed
        if first is None or first.status is None:
            return 1
        return first.status if first.status > 0 else 128 - first.status

    @property
    def first_failed(self) -> RankResult | None:
        """The rank whose failure came before, and caused, the others'."""
        failed = [rank for rank in self.ranks if rank.failed]
        return min(failed, key=lambda rank: (rank.is_consequence, rank.ended_at), default=None)

    def explain(self) -> str:
        """Return in words what went wrong: the first failure, then where the others stood."""
        parts = []
        first = self.first_failed
        if self.reason == "time limit":
            parts.append(
                f"The run reached its time limit of {round(self.timeout, 1):g} s and was ended."
            )
        elif self.reason == "standstill":
            parts.append(
                f"The run was ended: no rank computed or printed anything "
                f"for {self.stood_still:.0f} s."
            )
            lines = {(at.file, at.line) for rank in self.ranks if (at := rank.position)}
            if len(lines) > 1:
                parts.append(
                    "The ranks wait at different lines. Every rank must call the same "
                    "collectives, equally often and in the same order."
                )
        elif first is None:
            parts.append(f"The run did not end well: {self.reason}.")
        if first is not None and first.is_consequence:
            parts.append(
                "No rank failed by itself: the ranks did not all come to the same collective, "
                "and Horovod ended the run."
            )
        elif first is not None:
            who = "Horovod's launcher" if self.elastic else f"Rank {first.rank} failed first:"
            parts.append(f"{who} {first.describe_end()}")
            if first.error:
                parts.append(first.error["traceback"].rstrip())
            elif first.errors:
                parts += last_errors(first.errors)
        out_of_step = first is not None and first.is_consequence
        parts += [
            f"Rank {rank.rank} {rank.describe_position()}"
            for rank in self.ranks
            if not self.elastic
            and (rank.position or self.reason == "standstill" or (out_of_step and rank.status == 0))
        ]
        if first is None and self.reason == "failed":
            parts += self.launcher_output[-10:]
        parts += [self.launcher_log] if self.launcher_log else []
        return "\n".join(parts)


def last_errors(errors: list[str]) -> list[str]:
    """Return the last traceback that a worker of an elastic job printed, or else the last lines."""
    marks = [
        mark[0]
        for line in errors
        if (mark := _OF_WORKER.match(line)) and line[mark.end() :].startswith("Traceback")
    ]
    if not marks:
        return ["The last that it printed to stderr:", *errors[-10:]]
    of_worker = [line.removeprefix(marks[-1]) for line in errors if line.startswith(marks[-1])]
    (*_, begin) = (n for n, line in enumerate(of_worker) if line.startswith("Traceback"))
    return [LAST_ERROR, *of_worker[begin:]]


class RunFailed(RuntimeError):
    """A run did not end well; ``result`` holds all that is known about it."""

    def __init__(self, result: RunResult):
        super().__init__(result.explain())
        self.result = result

    def _render_traceback_(self) -> list[str]:
        """Let a notebook show the rank's traceback alone, without the launcher's own frames."""
        return ["RunFailed", *str(self).split("\n")]
