"""Reads what the learners of a class have done, from progress files and JUnit files.

Each learner has a folder. In it are ``progress.json``, or ``.hvdcourse/progress.json``, or JUnit
files that ``hvdcourse check --junit`` wrote. Where several of them tell of a step, it is met if one
of them says so.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from junitparser import JUnitXml, JUnitXmlError
from pydantic import BaseModel, NaiveDatetime, StrictBool, TypeAdapter, ValidationError

from hvdcourse.checks.classroom import Learner
from hvdcourse.checks.manifest import EXERCISES
from hvdcourse.checks.progress import PROGRESS_FILE, PROJECT_STATE
from hvdcourse.errors import BadInput

_CASE = re.compile(r"step (\d+): ")


class _Entry(BaseModel):
    """What a file tells of one exercise: which steps are met, and when it was checked last."""

    steps: dict[int, StrictBool]
    checked: NaiveDatetime | None = None


_PROGRESS = TypeAdapter(dict[str, _Entry])


def read_class(folders: Iterable[Path]) -> tuple[list[Learner], list[str]]:
    """Read the files of the learners in these folders; each is a learner's, or holds theirs.

    A folder without files beside those of other learners is that of one who has not begun.

    Returns:
        The learners in the order of their names, and what was left out, each in one line.
    """
    left_out: list[str] = []
    places: set[Path] = set()
    for folder in folders:
        try:
            places.update(map(Path.resolve, learner_folders(folder)))
        except (BadInput, OSError) as error:
            left_out.append(str(error))
    learners: list[Learner] = []
    for place, name in zip(sorted(places), names_of(sorted(places)), strict=True):
        try:
            learners += _read_learner(name, place, left_out)
        except OSError as error:
            left_out.append(str(error))
    return learners, left_out


def learner_folders(folder: Path) -> list[Path]:
    """Return the folders of the learners in a folder, or the folder itself where it is one.

    Raises:
        BadInput: there is no such folder, or it holds no learner's files.
        OSError: it cannot be read.
    """
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}")
    if _files_of(folder):
        return [folder]
    inner = [path for path in folder.iterdir() if path.is_dir() and path.name[0] != "."]
    if not any(map(_may_have_files, inner)):
        raise BadInput(
            f"neither {folder} nor a folder in it has {PROGRESS_FILE} or JUnit files; give a "
            "learner's folder, or one that holds a folder for each learner"
        )
    return inner


def _files_of(folder: Path) -> list[Path]:
    inside = sorted(folder.iterdir())
    kept = [folder / PROGRESS_FILE, folder / PROJECT_STATE / PROGRESS_FILE]
    return [*filter(Path.exists, kept), *(path for path in inside if path.suffix == ".xml")]


def _may_have_files(folder: Path) -> bool:
    try:
        return bool(_files_of(folder))
    except OSError:
        return True  # told when its files are read


def names_of(places: Sequence[Path]) -> list[str]:
    """Return a name for each learner's folder: its path below what all of them have in common."""
    homes = [place.parent if place.name == PROJECT_STATE else place for place in places]
    if len(homes) < 2:
        return [home.name for home in homes]
    common = os.path.commonpath(homes)
    return [os.path.relpath(home, common) for home in homes]


def _read_learner(name: str, folder: Path, left_out: list[str]) -> Iterator[Learner]:
    """Yield the learner; nobody where there are files and none of them can be read."""
    steps: dict[str, dict[int, bool]] = {}
    checked: dict[str, datetime] = {}
    files = _files_of(folder)
    unread = 0
    for file in files:
        try:
            entries = _read_junit(file) if file.suffix == ".xml" else _read_progress(file)
        except (BadInput, OSError) as error:
            left_out.append(str(error))
            unread += 1
            continue
        for exercise, entry in _of_this_course(entries, file, left_out):
            own = steps.setdefault(exercise, {})
            own.update({n: met or own.get(n, False) for n, met in entry.steps.items()})
            if entry.checked is not None:
                checked[exercise] = entry.checked
    if not files or unread < len(files):
        yield Learner(name, steps, checked)


def _read_progress(file: Path) -> dict[str, _Entry]:
    try:
        return _PROGRESS.validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        what = ": ".join([*map(str, first["loc"]), first["msg"]])
        raise BadInput(f"{file} is not a progress file of this course: {what}") from None


def _read_junit(file: Path) -> dict[str, _Entry]:
    try:
        report = JUnitXml.fromfile(str(file))
    except (JUnitXmlError, SyntaxError) as error:
        raise BadInput(f"{file} is not a JUnit file: {error}") from None
    entries = {}
    for suite in report if isinstance(report, JUnitXml) else [report]:
        cases = [(_CASE.match(str(case.name)), case.is_passed) for case in suite]
        steps = {int(match[1]): passed for match, passed in cases if match}
        entries[str(suite.name)] = _Entry(steps=steps)
    return entries


def _of_this_course(
    entries: Mapping[str, _Entry], file: Path, left_out: list[str]
) -> Iterator[tuple[str, _Entry]]:
    """Yield what is told of the course's own exercises and steps."""
    last = {exercise.name: len(exercise.steps) for exercise in EXERCISES}
    for name, entry in entries.items():
        if name not in last:
            left_out.append(f"{file}: this course has no exercise {name!r}")
        elif not entry.steps.keys() <= set(range(1, last[name] + 1)):
            left_out.append(f"{file}: {name} has steps 1 to {last[name]}, and no other")
        else:
            yield name, entry
