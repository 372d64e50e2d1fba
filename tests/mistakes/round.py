"""Mistakes that people make. Those of one round share a run: each step is judged by itself."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """A mistake in one step: what stands in the place of what, and what the learner is told.

    ``said`` are texts that the verdict on the step must have.
    """

    step: int
    name: str
    changes: tuple[tuple[str, str], ...]
    said: tuple[str, ...]


@dataclass(frozen=True)
class Round:
    """Mistakes of different steps. ``spoiled`` are other steps that cannot be right with them.

    With ``crashes``, one of the check's runs does not end well. With ``only``, no other steps are
    judged, which saves the runs that they need.
    """

    mistakes: tuple[Mistake, ...]
    spoiled: tuple[int, ...] = ()
    crashes: bool = False
    only: bool = False

    @property
    def steps(self) -> tuple[int, ...] | None:
        """The steps to judge; None for all."""
        return tuple(sorted(mistake.step for mistake in self.mistakes)) if self.only else None


def mistake(step: int, name: str, *changes: tuple[str, str], said: str | tuple[str, ...]):
    return Mistake(step, name, changes, (said,) if isinstance(said, str) else said)


def together(
    *mistakes: Mistake, spoiled: tuple[int, ...] = (), crashes: bool = False, only: bool = False
) -> Round:
    return Round(mistakes, spoiled, crashes, only)
