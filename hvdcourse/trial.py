"""One run of an exercise's script, as a check wants it."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Trial:
    """One run of an exercise's script: the number of ranks and the script's arguments.

    ``{rank}`` in an argument stands for each rank's own number. ``steps`` are the steps that this
    run is needed for; all, where it is empty.
    """

    np: int
    arguments: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)
    steps: tuple[int, ...] = ()

    def judges(self, step: int) -> bool:
        """Whether this run is needed for a step."""
        return not self.steps or step in self.steps
