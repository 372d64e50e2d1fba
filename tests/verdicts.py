"""Verdicts on texts that stand in for a learner's script."""

import functools
import os
import random

from watching import watched

from hvdcourse import check
from hvdcourse.checks.check import SECONDS
from hvdcourse.checks.manifest import find_exercise
from hvdcourse.checks.stages import parse, render
from hvdcourse.checks.verdict import ExerciseVerdict
from hvdcourse.paths import SOLUTIONS

# A check on a busy machine may take longer than a learner's.
PATIENCE = 4 * SECONDS
# The sizes and seeds that a check draws are the same whenever a text is checked here. Others:
# HVDCOURSE_TEST_DRAWS=1 make test
DRAWS = os.environ.get("HVDCOURSE_TEST_DRAWS", "0")


@functools.cache
def verdict_on(
    name: str, text: str, steps: tuple[int, ...] | None = None, timeout: float = PATIENCE
) -> ExerciseVerdict:
    """Check this text as the learner's script; equal texts are checked once."""
    if steps == tuple(step.number for step in find_exercise(name).steps):
        return verdict_on(name, text, timeout=timeout)
    random.seed(DRAWS + text)
    with watched() as temporary:
        folder = temporary / "source"
        folder.mkdir()
        (folder / f"{name}.py").write_text(text)
        return check(name, steps, folder=folder, timeout=timeout)


def solution(name: str, *, without: tuple[int, ...] = ()) -> str:
    """Return the solution, with these steps undone."""
    parts = parse((SOLUTIONS / f"{name}.py").read_text(), name)
    numbers = {step.number for step in find_exercise(name).steps}
    return render(parts, numbers - set(without))


def untouched(name: str) -> str:
    """Return the script as learners get it."""
    return solution(name, without=tuple(step.number for step in find_exercise(name).steps))


def changed(name: str, *changes: tuple[str, str]) -> str:
    """Return the solution with each first text, which stands there once, replaced."""
    text = solution(name)
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def passed(verdict: ExerciseVerdict) -> list[int]:
    return [step.number for step in verdict.steps if step.passed]


def told(verdict: ExerciseVerdict) -> str:
    """Return all that the learner is told of the steps that are not met."""
    return "\n".join(step.told for step, *_ in verdict.rows() if step.told)
