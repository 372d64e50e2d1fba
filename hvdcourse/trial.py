"""One run of an exercise's script, as a check wants it."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Trial:
    """One run of an exercise's script: the number of ranks and the script's arguments.

    ``{rank}`` in an argument stands for each rank's own number. ``steps`` are the steps that this
    run is needed for; all, where it is empty. With a ``plan``, see ``hvdcourse.elastic_run``, it is
    an elastic job, and the checks judge how it ends. ``about`` tells a learner what is special
    about this run.
    """

    np: int
    arguments: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)
    steps: tuple[int, ...] = ()
    plan: tuple[dict[str, Any], ...] = ()
    about: str = ""

    def judges(self, step: int) -> bool:
        """Whether this run is needed for a step."""
        return not self.steps or step in self.steps
