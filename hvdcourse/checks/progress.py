"""Remembers which steps were met when they were last judged, in one small JSON file."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock
from rich.table import Table

from hvdcourse.checks.exercise import Exercise
from hvdcourse.checks.hints import LEVELS, hints_for
from hvdcourse.checks.manifest import EXERCISES
from hvdcourse.checks.verdict import ExerciseVerdict
from hvdcourse.files import write_whole
from hvdcourse.paths import COPY, SOURCE_CODE

STATE_VARIABLE = "HVDCOURSE_STATE"
PROJECT_STATE = ".hvdcourse"
PROGRESS_FILE = "progress.json"
_LOCK_SECONDS = 10


def state_folder() -> Path:
    """Return where progress and the copies of reset files are kept, made if need be.

    That is the folder that HVDCOURSE_STATE names, else ``.hvdcourse/`` in the project or in the
    learner's copy of it, or, where that is read-only, ``hvdcourse/`` among the user's state files.

    Raises:
        OSError: the folder cannot be made.
    """
    if STATE_VARIABLE in os.environ:
        folder = Path(os.environ[STATE_VARIABLE])
    elif os.access(COPY, os.W_OK):
        folder = COPY / PROJECT_STATE
    else:
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        folder = Path(base) / "hvdcourse"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def digest_of_script(script: Path) -> str:
    """Return a short digest of a script, to see later whether it has changed."""
    return hashlib.sha256(script.read_bytes()).hexdigest()[:16] if script.exists() else ""


def read_kept(name: str) -> dict[str, Any]:
    """Return what a JSON file of this name keeps; a damaged file counts as nothing."""
    try:
        kept = json.loads((state_folder() / name).read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


@contextmanager
def keeping(name: str) -> Iterator[dict[str, Any]]:
    """Yield what a JSON file of this name keeps, and keep what is changed in it."""
    path = state_folder() / name
    with FileLock(path.with_suffix(".lock"), timeout=_LOCK_SECONDS):
        kept = read_kept(name)
        yield kept
        write_whole(path, json.dumps(kept, indent=2))


def remember(verdict: ExerciseVerdict) -> None:
    """Keep a verdict on the learner's own script.

    Raises:
        OSError: the file cannot be written; what was remembered before is still there.
    """
    with kept_entry(verdict.exercise) as entry:
        entry["checked"] = datetime.now().isoformat(timespec="seconds")
        entry["script"] = digest_of_script(Path(verdict.script))
        judged = (step for step in verdict.steps if not step.run_failed)
        entry["steps"].update({str(step.number): step.passed for step in judged})
        entry.setdefault("told", {}).update({str(step.number): step.told for step in verdict.steps})


@contextmanager
def kept_entry(exercise: str) -> Iterator[dict[str, Any]]:
    """Yield what is remembered of one exercise, and keep what is changed in it."""
    with keeping(PROGRESS_FILE) as progress:
        yield progress.setdefault(exercise, {"steps": {}})


def next_hints(exercise: str, step: int) -> str:
    """Return the hints for a step that were shown before and one more, after the last check.

    Raises:
        OSError: it cannot be kept how many were shown.
    """
    with kept_entry(exercise) as entry:
        shown, number = entry.setdefault("hints", {}), str(step)
        shown[number] = min(len(LEVELS), shown.get(number, 0) + 1)
    verdict = entry.get("told", {}).get(number, "")
    more = "For the next hint, type the same command again."
    if shown[number] == len(LEVELS):
        more = f"That was the last hint. The code: hvdcourse solution {exercise} {step}"
    return f"{hints_for(exercise, step, verdict).in_words(shown[number])}\n\n{more}"


def progress_of(exercise: Exercise, progress: dict[str, Any]) -> dict[str, Any]:
    """Return one exercise's progress as plain data, every step of it as True or False."""
    entry = progress.get(exercise.name, {"steps": {}})
    steps = {str(s.number): entry["steps"].get(str(s.number), False) for s in exercise.steps}
    script = SOURCE_CODE / f"{exercise.name}.py"
    return {
        "exercise": exercise.name,
        "notebook": exercise.notebook,
        "steps": steps,
        "met": sum(steps.values()),
        "of": len(steps),
        "checked": entry.get("checked"),
        "changed_since": "script" in entry and entry["script"] != digest_of_script(script),
    }


def all_progress() -> list[dict[str, Any]]:
    """Return the progress in every exercise, in the order of the course."""
    progress = read_kept(PROGRESS_FILE)
    return [progress_of(exercise, progress) for exercise in EXERCISES]


def progress_table(rows: list[dict[str, Any]]) -> Table:
    """Return the progress as a table for people."""
    table = Table("lesson", "exercise", "steps", "", "last check")
    for row in rows:
        marks = "".join("●" if met else "○" for met in row["steps"].values())
        when = (row["checked"] or "not yet").replace("T", " ")
        note = " (changed since)" if row["changed_since"] else ""
        count = f"{row['met']} of {row['of']}"
        table.add_row(row["notebook"], row["exercise"], count, marks, when + note)
    return table
