"""What an exercise consists of: the steps that it is done in, and the runs that show them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hvdcourse.checks.evidence import ObservedRun
from hvdcourse.errors import BadInput
from hvdcourse.launch.job import Disturbance


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of an exercise. Raises ValueError without a title or a check.

    ``check`` raises Unmet where the step is not met. The hints are in ``hvdcourse.checks.hints``.
    """

    number: int
    title: str
    check: Callable[[ObservedRun], None]

    def __post_init__(self) -> None:
        if not (self.title.strip() and callable(self.check)):
            raise ValueError(f"step {self.number} ({self.title!r}) needs a title and a check")


# Where rank, local rank and cross rank differ, and size and local size: a script that takes one for
# another goes wrong.
UNEVEN_HOSTS = (2, 1)
ALONE = (1,)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One run of an exercise's script: the number of ranks on each host, the script's arguments.

    ``{rank}`` in an argument stands for each rank's own number. ``steps`` are the steps that this
    run is needed for; all, where it is empty. With a ``plan``, see ``hvdcourse.launch.elastic``, it
    is an elastic job, and the checks judge how it ends. ``about`` tells a learner what is special
    about this run.
    """

    hosts: tuple[int, ...]
    arguments: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)
    steps: tuple[int, ...] = ()
    plan: tuple[Disturbance, ...] = ()
    about: str = ""

    @property
    def np(self) -> int:
        """The number of ranks."""
        return sum(self.hosts)

    @property
    def ranks_in_words(self) -> str:
        """The number of ranks, and how they are spread where the hosts are several."""
        ranks = "1 rank" if self.np == 1 else f"{self.np} ranks"
        spread = f" on {len(self.hosts)} hosts ({' + '.join(map(str, self.hosts))})"
        return ranks + (spread if len(self.hosts) > 1 else "")

    @property
    def disturbed(self) -> bool:
        """Whether workers are killed or added in this run."""
        return bool(self.plan)

    def judges(self, step: int) -> bool:
        """Whether this run is needed for a step."""
        return not self.steps or step in self.steps


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """A script with steps. ``longest_run`` is the part of a check's time that one run may take.

    ``standstill`` is how many seconds a run may stand still.
    ``observe`` names what to record of the ranks' communication; empty for nothing.
    ``trials`` gets a folder for the files that the runs of one check write.
    """

    name: str
    notebook: str
    trials: Callable[[Path], Iterable[Trial]]
    steps: tuple[Step, ...]
    backend: str = "gloo"
    observe: str = ""
    longest_run: float = 1.0
    standstill: float = 8
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if [step.number for step in self.steps] != list(range(1, len(self.steps) + 1)):
            raise ValueError(f"the steps of {self.name} must be numbered 1, 2, 3, …")

    def step(self, number: int | str) -> Step:
        """Return one step. Raises BadInput where the exercise has no such step."""
        for step in self.steps:
            if str(step.number) == str(number):
                return step
        raise BadInput(f"{self.name} has steps 1 to {len(self.steps)}; there is no step {number!r}")
