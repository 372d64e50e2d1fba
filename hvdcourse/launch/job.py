"""What a run is asked to do, and what its supervisor tells while it does it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hvdcourse.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of a script on ``np`` ranks of this machine.

    ``hosts`` has the number of ranks of each host that the ranks are told they are on; all of them
    are this machine. ``command`` is the line that starts the ranks, as a list of words. Where it is
    empty, the supervisor starts them itself: the quick start of checks and studies. ``cores`` are
    those that they get then, all of the caller's where it is empty. ``folder`` is the run folder,
    which the supervisor makes: a caller that is killed before has left nothing. ``environment`` is
    added to the caller's. Both limits are in seconds.
    """

    np: int
    script: str
    arguments: list[str]
    backend: str
    environment: dict[str, str]
    timeout: float
    standstill: float
    folder: str
    hosts: tuple[int, ...] = ()
    cores: list[int] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """What happens to an elastic job when it has ended an epoch: ranks die, or a host is added.

    Ranks die at the end of the next epoch, before it is told of and committed.

    Raises:
        BadInput: it does neither, or ``after_epoch`` or ``kill`` is of another kind.
    """

    after_epoch: int
    kill: Sequence[int] = ()
    add: str | None = None

    def __post_init__(self) -> None:
        """Refuse what a job could not do."""
        if not isinstance(self.after_epoch, int):
            raise BadInput(f"after_epoch must be a number of epochs; got {self.after_epoch!r}")
        if not isinstance(self.kill, list | tuple):
            raise BadInput(f"kill must be a list of ranks, such as [1]; got {self.kill!r}")
        if not self.kill and not self.add:
            raise BadInput(f"{self} does nothing: give it kill=[1], the ranks, or add, a host")


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Where, with which variables and on which cores the caller runs; the run does so, too."""

    folder: str
    environment: dict[str, str]
    cores: list[int]

    @classmethod
    def this_process(cls) -> "Caller":
        """Return what holds for this process."""
        return cls(
            folder=os.getcwd(),
            environment=dict(os.environ),
            cores=sorted(os.sched_getaffinity(0)),
        )


@dataclass(frozen=True, kw_only=True)
class OutputLine:
    """A line that a rank printed; ``rank`` None is the launcher, such as horovodrun."""

    rank: int | None
    stream: str
    text: str


@dataclass(frozen=True, kw_only=True)
class MetricsRow:
    """One row of the metrics that rank 0 reports."""

    values: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ProcessEnd:
    """The end of a rank, or of the launcher (None), at a time in seconds since the epoch.

    ``by_supervisor`` says that it had to be ended.
    """

    rank: int | None
    status: int
    time: float
    by_supervisor: bool


@dataclass(frozen=True, kw_only=True)
class RunEnd:
    """The last event: why the run is over, and for how many seconds it had stood still."""

    reason: str
    stood_still: float = 0.0
    log: str = ""


Event = OutputLine | MetricsRow | ProcessEnd | RunEnd
