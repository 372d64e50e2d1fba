"""Puts recorded verdicts into the lessons, so that who only reads a page sees what a check says.

``make verdicts`` checks, for each ``check(…)`` cell of the lessons, an unfinished script and the
solution, and writes both verdicts, folded, into a cell below it; so it does with the scores of the
challenge. They are recordings: what a learner's own script gets appears above them when the cell is
run.
"""

import ast
import html
import io
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import nbformat
from challenge_stages import judged
from rich.console import Console, RenderableType

from hvdcourse import check
from hvdcourse.checks.manifest import CHALLENGE
from hvdcourse.checks.stages import parse, render
from hvdcourse.checks.verdict import ExerciseVerdict
from hvdcourse.paths import NOTEBOOKS, SOLUTIONS

TAG = "recorded-verdicts"
SUMMARY = "Recorded verdicts: an unfinished script, and a finished one"
COLUMNS = 78  # Fits beside JupyterLab's file browser on a screen of 1,280 pixels.
# How long a check took says more of the machine that recorded it. A long line breaks before it.
SECONDS = re.compile(r"\s+\([\d.]+\s+s\)$", re.MULTILINE)


def checked(cell: nbformat.NotebookNode) -> tuple[str, list[int] | None] | None:
    """Return the exercise and the steps that a cell checks; None for a cell that checks nothing."""
    if cell.cell_type != "code" or not cell.source.startswith("check("):
        return None
    call = ast.parse(cell.source).body[0].value  # type: ignore[attr-defined]
    name, *rest = (eval(ast.unparse(argument)) for argument in call.args)
    if not rest:
        return name, None
    return name, [rest[0]] if isinstance(rest[0], int) else list(rest[0])


def verdict_on(name: str, steps: list[int] | None, done: set[int]) -> ExerciseVerdict:
    """Check the script of an exercise in which these steps are done."""
    with tempfile.TemporaryDirectory(prefix="hvdcourse-") as folder:
        parts = parse((SOLUTIONS / f"{name}.py").read_text(), name)
        Path(folder, f"{name}.py").write_text(render(parts, done))
        return check(name, steps, folder=folder)


def as_text(verdict: RenderableType) -> str:
    """Return the table of a verdict, or of a score, as plain text."""
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, highlight=False)
    console.print(verdict)
    return SECONDS.sub("", console.export_text().rstrip())


def recording(name: str, steps: list[int] | None) -> str:
    """Return the source of the cell with two verdicts: half of the steps done, and all of them."""
    finished = verdict_on(name, steps, set(range(1, 100)))
    if not finished.passed:
        sys.exit(f"error: the solution of {name} does not meet its check\n{as_text(finished)}")
    judged = [step.number for step in finished.steps]
    done = {*range(1, judged[0]), *judged[: len(judged) // 2]}
    unfinished = verdict_on(name, steps, done)
    what = f"done up to step {max(done)}" if done else "as you get it"
    return folded(SUMMARY, {f"`{name}.py` {what}": unfinished, "All steps done": finished})


def recording_of_challenge() -> str:
    """Return the source of the cell with two scores: of a program on the way, and of the answer."""
    stages = ("right, but slow", "solution")
    summary = "Recorded scores: a program that is right, but slow, and the solution"
    with judged(stages[0]) as on_the_way, judged(stages[1]) as finished:
        scores = dict(zip(stages, (on_the_way, finished), strict=True))
    return folded(summary, {f"`{CHALLENGE}.py`, {stage}": scores[stage] for stage in stages})


def folded(summary: str, verdicts: Mapping[str, RenderableType]) -> str:
    """Return a box to open, with each verdict below the words that say what was judged."""
    texts = [
        f"{what}:\n\n<pre>\n{html.escape(as_text(verdict), quote=False)}\n</pre>"
        for what, verdict in verdicts.items()
    ]
    return f"<details><summary>{summary}</summary>\n\n" + "\n\n".join(texts) + "\n</details>"


def recorded_cell(cell: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    """Return the cell with the verdicts that belong below this cell; None where it judges none."""
    if exercise := checked(cell):
        name, source = exercise[0], recording(*exercise)
    elif cell.source.startswith("score = challenge("):
        name, source = CHALLENGE, recording_of_challenge()
    else:
        return None
    verdicts = nbformat.v4.new_markdown_cell(source)
    verdicts.id = f"verdicts-{name}".replace("_", "-")[:64]
    verdicts.metadata["tags"] = [TAG]
    return verdicts


def main() -> None:
    """Record the verdicts of all lessons, or of those named."""
    for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        notebook = nbformat.read(path, as_version=4)
        cells = []
        for cell in notebook.cells:
            if TAG in cell.metadata.get("tags", []):
                continue
            cells.append(cell)
            if verdicts := recorded_cell(cell):
                print(f"{path.stem}: {verdicts.id}", flush=True)
                cells.append(verdicts)
        notebook.cells = cells
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
