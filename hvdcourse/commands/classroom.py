"""What ``hvdcourse class`` does: where learners are, as a table, a picture or JSON."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hvdcourse.checks.class_files import read_class
from hvdcourse.checks.classroom import Learner, Stop, stops_of, without_names
from hvdcourse.checks.manifest import EXERCISES, find_exercise
from hvdcourse.errors import BadInput

PICTURES = (".png", ".svg")
_MOST_STOPS = 5


def show_class(
    console: Console, folders: Sequence[Path], names: bool, picture: Path | None, as_json: bool
) -> bool:
    """Print, and draw if asked to, the progress of the learners in these folders.

    What is left out is told on stderr, by the names of its files. Returns whether all was read.

    Raises:
        BadInput: nobody's progress can be read, or the picture is of another kind.
        OSError: the picture cannot be written.
    """
    if picture is not None and picture.suffix not in PICTURES:
        raise BadInput(f"a picture is a file {' or '.join(PICTURES)}; got {str(picture)!r}")
    learners, left_out = read_class(folders)
    for line in left_out:
        print(f"left out: {line}", file=sys.stderr)
    if not learners:
        raise BadInput("there is no learner's progress in these folders")
    learners = learners if names else without_names(learners)
    stops = stops_of(learners)
    if picture is not None:
        draw_class(learners, picture)
    if as_json:
        data = {
            "learners": [learner.to_dict() for learner in learners],
            "stops": [stop.to_dict() for stop in stops],
            "left_out": len(left_out),
        }
        print(json.dumps(data, indent=2))
    else:
        console.print(class_table(learners))
        for line in stops_in_words(stops):
            console.print(line, markup=False)
    return not left_out


def class_table(learners: Sequence[Learner]) -> Table:
    """Return a table of where the learners are, for people."""
    steps = sum(len(exercise.steps) for exercise in EXERCISES)
    table = Table("learner", "steps met", "is at", "last check")
    for learner in learners:
        place = place_in_words(learner.place)
        met = f"{learner.met} of {steps}"
        table.add_row(Text(learner.name), met, Text(place), learner.last_check or "")
    return table


def place_in_words(place: tuple[str, int | None] | None) -> str:
    """Return where a learner is: the exercise, and the step that is not met yet."""
    if place is None:
        return "not begun"
    name, step = place
    if step is None:
        return f"{name}, all steps met"
    return f"{name}, step {step}: {find_exercise(name).step(step).title}"


def stops_in_words(stops: Sequence[Stop]) -> list[str]:
    """Return a line for each step that stops most."""
    if not stops:
        return ["No step stops anybody."]
    lines = [
        f"  {stop.exercise}, step {stop.step}: {stop.title} ({stop.stopped} of {stop.judged})"
        for stop in stops[:_MOST_STOPS]
    ]
    return ["The steps that stop most learners, of those whose check has judged them:", *lines]


def draw_class(learners: Sequence[Learner], picture: Path) -> None:
    """Draw the learners' steps into a file. Raises OSError where it cannot be written."""
    from hvdcourse.plots.classroom import Mark, plot_class

    def mark(learner: Learner, exercise: str, step: int) -> Mark:
        met = learner.steps.get(exercise, {}).get(step)
        if met is None:
            return Mark.NOT_CHECKED
        stopped = (exercise, step) in learner.stops
        return Mark.MET if met else Mark.STOPPED if stopped else Mark.UNMET

    steps = [(exercise.name, step.number) for exercise in EXERCISES for step in exercise.steps]
    marks = [[mark(learner, *step) for step in steps] for learner in learners]
    sizes = {exercise.name: len(exercise.steps) for exercise in EXERCISES}
    plot_class(sizes, [learner.name for learner in learners], marks).savefig(picture, dpi=150)
