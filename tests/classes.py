"""Learners' files for the tests of a class, written by what writes them for learners."""

from pathlib import Path

import pytest

from hvdcourse.checks.manifest import find_exercise
from hvdcourse.checks.progress import STATE_VARIABLE, remember
from hvdcourse.checks.verdict import ExerciseVerdict, StepVerdict


def verdict(exercise: str, *met: int) -> ExerciseVerdict:
    """Return a verdict on a whole exercise, of which these steps are met."""
    steps = [
        StepVerdict(step.number, step.title, step.number in met, "it is met", ["it is not"])
        for step in find_exercise(exercise).steps
    ]
    return ExerciseVerdict(exercise, f"{exercise}.py", steps, None, 1.0)


def remembered(folder: Path, *verdicts: ExerciseVerdict) -> Path:
    """Keep these verdicts as a learner's progress in a folder, and return the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STATE_VARIABLE, str(folder))
        for one in verdicts:
            remember(one)
    return folder


def a_class(folder: Path) -> Path:
    """Make a class of four: two with progress, one with JUnit files, and one who has not begun."""
    remembered(folder / "ann", verdict("mpi_concepts", *range(1, 9)), verdict("fashion_mnist", 1))
    # Where the course is this learner's own.
    remembered(folder / "ben" / ".hvdcourse", verdict("mpi_concepts", 1, 3))
    (folder / "eve").mkdir()
    for name, met in (("fashion_mnist", (1, 3)), ("ring_allreduce", (1, 2, 3, 4))):
        verdict(name, *met).write_junit(folder / "eve" / f"{name}.xml")
    (folder / "zoe").mkdir()
    return folder
