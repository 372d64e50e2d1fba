"""The learner's own files: put one back as it was, and look at a step's solution."""

import shutil
from datetime import datetime
from pathlib import Path

from hvdcourse.checks.exercise import Exercise
from hvdcourse.checks.progress import state_folder
from hvdcourse.checks.stages import Block, generated_files, parse
from hvdcourse.files import write_whole
from hvdcourse.paths import SOLUTIONS, SOURCE_CODE


def reset(name: str) -> Path | None:
    """Put the script of this name back as it came, and return the dated copy of the learner's.

    Returns None where there was no script to copy.

    Raises:
        OSError: the copy or the script cannot be written; the script is then untouched.
    """
    script = SOURCE_CODE / f"{name}.py"
    fresh = generated_files(SOLUTIONS / f"{name}.py", SOURCE_CODE)[script]
    copy = None
    if script.exists():
        stamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S_%f")
        copy = state_folder() / f"{name}_{stamp}.py"
        shutil.copy2(script, copy)
    write_whole(script, fresh)
    return copy


def solution_of_step(exercise: Exercise, number: int) -> str:
    """Return the lines that the solution has in the blocks of one step."""
    path = SOLUTIONS / f"{exercise.name}.py"
    parts = parse(path.read_text(), path.name)
    blocks = (part for part in parts if isinstance(part, Block))
    return "\n\n".join("\n".join(b.render(solved=True)) for b in blocks if b.step == number)
