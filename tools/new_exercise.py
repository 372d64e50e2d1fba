"""Lays out a new exercise: ``make new-exercise NAME=my_exercise LESSON=1``.

The files come from ``tools/exercise_template``. They are an exercise with one step, which the
untouched script fails, and which the solution, a mistake and an answer already show.
"""

import argparse
import importlib.util
import keyword
import re
import subprocess
import sys
from pathlib import Path

from hvdcourse.checks.manifest import CHALLENGE, EXERCISES
from hvdcourse.checks.stages import generate
from hvdcourse.errors import BadInput
from hvdcourse.paths import PROJECT

TEMPLATE = PROJECT / "tools" / "exercise_template"
PLACES = {
    "solution.py": "solutions/{name}.py",
    "check.py": "hvdcourse/checks/exercises/{name}.py",
    "hints.yaml": "hvdcourse/checks/exercises/hints/{name}.yaml",
    "mistakes.py": "tests/mistakes/{name}.py",
    "answer.py": "tests/answers/{name}_by_gathering.py",
}
MANIFEST = "hvdcourse/checks/manifest.py"


def checked_name(name: str, project: Path) -> str:
    """Return the name. Raises BadInput where it is none, or something has it already."""
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise BadInput(f"a name is a Python name in lower case, such as my_exercise; got {name!r}")
    if name.endswith("_before") or "_after_step_" in name:
        raise BadInput(
            f"{name!r} looks like a file that belongs to a solution; choose another name"
        )
    # A script of that name would be imported in its place.
    if importlib.util.find_spec(name):
        raise BadInput(f"Python has a module {name!r} already; choose another name")
    taken = [place.format(name=name) for place in PLACES.values()]
    taken = [place for place in taken if (project / place).exists()]
    if taken:
        raise BadInput(f"{taken[0]} is there already; choose another name")
    # An answer is found by the exercise's name, with which the name of its file begins.
    for other in [CHALLENGE, *(exercise.name for exercise in EXERCISES)]:
        if name.startswith(other) or other.startswith(name):
            raise BadInput(
                f"one of {name!r} and {other!r} begins with the other; choose another name"
            )
    return name


def notebook_of(lesson: str, project: Path) -> Path:
    """Return the notebook of a lesson. Raises BadInput where there is none."""
    notebooks = {path.name[:2]: path for path in (project / "notebooks").glob("[0-9][0-9]_*.ipynb")}
    if lesson.zfill(2) not in notebooks:
        numbers = ", ".join(str(int(number)) for number in sorted(notebooks))
        raise BadInput(f"a lesson is one of {numbers}; got {lesson!r}")
    return notebooks[lesson.zfill(2)]


def lay_out(name: str, lesson: str, project: Path = PROJECT) -> list[Path]:
    """Write the files of a new exercise, and return them and those that were changed for it.

    Raises:
        BadInput: the name cannot be used, or there is no such lesson.
    """
    name, notebook = checked_name(name, project), notebook_of(lesson, project).stem
    written = []
    for source, place in PLACES.items():
        text = (TEMPLATE / source).read_text()
        path = project / place.format(name=name)
        path.write_text(text.replace("new_exercise", name).replace("its_lesson", notebook))
        written.append(path)
    manifest = project / MANIFEST
    manifest.write_text(registered(name, manifest.read_text()))
    written.append(manifest)
    # A long name moves lines and imports.
    python = [path for path in written if path.suffix == ".py"]
    for command in (["check", "--select=I", "--fix"], ["format"]):
        subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--quiet", *python], cwd=project, check=True
        )
    return written + generate(project / "solutions", project / "source_code")


def registered(name: str, manifest: str) -> str:
    """Return the manifest's text with this exercise as its last one."""
    text = manifest.replace("exercises import (\n", f"exercises import (\n    {name},\n", 1)
    before, tuples, after = text.partition("EXERCISES: tuple[Exercise, ...] = (\n")
    return before + tuples + after.replace("\n)\n", f"\n    {name}.EXERCISE,\n)\n", 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="a Python name in lower case, such as my_exercise")
    parser.add_argument("--lesson", default="1", help="the number of the lesson that it is in")
    arguments = parser.parse_args()
    try:
        files = lay_out(arguments.name, arguments.lesson)
    except BadInput as error:
        sys.exit(f"error: {error}")
    name, lesson = arguments.name, notebook_of(arguments.lesson, PROJECT).name
    for path in files:
        print(f"wrote {path.relative_to(PROJECT)}")
    print(f"""
The script fails its step, and the solution passes it:

    hvdcourse check {name}
    hvdcourse check {name} --folder solutions

What is left for you to write, CONTRIBUTING.md tells in "An exercise". By hand, too: its place among
the exercises in {MANIFEST}, a cell
check("{name}", folder=SCRIPTS) in notebooks/{lesson}, and its name in README.md.""")


if __name__ == "__main__":
    main()
