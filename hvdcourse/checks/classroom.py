"""What the learners of a class have done: where each of them is, and which steps stop them."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from hvdcourse.checks.manifest import EXERCISES, find_exercise


@dataclass(frozen=True)
class Learner:
    """What one learner has done.

    Attributes:
        name: the learner's name, or a number that stands for it.
        steps: by exercise, whether each step that a check has judged is met.
        checked: by exercise, when it was checked last, where that is known.
    """

    name: str
    steps: Mapping[str, Mapping[int, bool]]
    checked: Mapping[str, datetime]

    @property
    def met(self) -> int:
        """How many steps are met, in all exercises."""
        return sum(sum(of_exercise.values()) for of_exercise in self.steps.values())

    @property
    def stops(self) -> list[tuple[str, int]]:
        """The first step of each exercise that was judged and is not met."""
        unmet = (
            (name, [number for number, met in sorted(of_exercise.items()) if not met])
            for name, of_exercise in self.steps.items()
        )
        return [(name, numbers[0]) for name, numbers in unmet if numbers]

    @property
    def place(self) -> tuple[str, int | None] | None:
        """The exercise that was checked last, and its first step that is not met, if any.

        JUnit files tell no time: without one it is the last exercise in the order of the course.
        None for a learner who has not checked anything.
        """
        begun = [exercise for exercise in EXERCISES if self.steps.get(exercise.name)]
        if not begun:
            return None
        # Of those without a time, and so equal, max takes the first.
        last = max(reversed(begun), key=lambda exercise: str(self.checked.get(exercise.name, "")))
        judged = self.steps[last.name]
        unmet = (step.number for step in last.steps if not judged.get(step.number))
        return last.name, next(unmet, None)

    @property
    def last_check(self) -> str | None:
        """The day of the last check, such as 2026-03-31; None where no file tells it."""
        return max((str(when.date()) for when in self.checked.values()), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the learner as plain data for ``--json``."""
        exercise, step = self.place or (None, None)
        return {
            "learner": self.name,
            "met": self.met,
            "exercise": exercise,
            "step": step,
            "last_check": self.last_check,
            "steps": self.steps,
        }


@dataclass(frozen=True)
class Stop:
    """A step that stops learners: it is the first unmet one for ``stopped`` of ``judged``."""

    exercise: str
    step: int
    stopped: int
    judged: int

    @property
    def title(self) -> str:
        """What must be true after the step."""
        return find_exercise(self.exercise).step(self.step).title

    def to_dict(self) -> dict[str, Any]:
        """Return the step as plain data for ``--json``."""
        return asdict(self) | {"title": self.title}


def without_names(learners: Sequence[Learner]) -> list[Learner]:
    """Return the learners with numbers as their names.

    Who has met most steps comes first, and chance orders those who have met equally many, so that
    a number does not tell a name.
    """
    shuffled = random.SystemRandom().sample(learners, len(learners))
    ordered = sorted(shuffled, key=lambda learner: -learner.met)
    return [replace(learner, name=f"learner {n}") for n, learner in enumerate(ordered, start=1)]


def stops_of(learners: Sequence[Learner]) -> list[Stop]:
    """Return the steps that stop anybody, those that stop most learners first."""
    stopped = Counter(stop for learner in learners for stop in learner.stops)
    judged = Counter(
        (name, number)
        for learner in learners
        for name, of_exercise in learner.steps.items()
        for number in of_exercise
    )
    order = [exercise.name for exercise in EXERCISES]
    steps = sorted(stopped, key=lambda step: (-stopped[step], order.index(step[0]), step[1]))
    return [Stop(*step, stopped[step], judged[step]) for step in steps]
