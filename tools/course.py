"""Runs the notebooks with the solutions, without a browser, and writes them with their outputs.

``python tools/course.py build/course`` writes copies and HTML pages into that folder; it is ``make
course``. With ``--in-place``, ``make notebooks``, the outputs also go into ``notebooks/`` itself. A
notebook fails where a cell does, and where a solution does not meet its check.

``python tools/course.py --prepare`` runs nothing: it writes solved, quick copies into ``build/``,
which nbval then runs and compares in ``make test``.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
from jupyter_server_mathjax.app import STATIC_ASSETS_PATH
from kernels import AsyncLocalKernelManager
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter
from papermill import execute_notebook
from papermill.exceptions import PapermillExecutionError
from PIL import Image

from hvdcourse.checks.display import OUTPUT_METADATA
from hvdcourse.checks.progress import STATE_VARIABLE
from hvdcourse.checks.queue import QUEUE_VARIABLE
from hvdcourse.paths import NOTEBOOKS, PROJECT

CELL_SECONDS = 600
# Horovod's messages name the file of its own source, as it was called where it was compiled.
_SOURCES_OF_A_LIBRARY = re.compile(r"(?:/[\w.+-]+)+/src/(?=horovod/|third_party/)")
MATHJAX_URL = "mathjax/MathJax.js?config=TeX-AMS-MML_HTMLorMML-full,Safe"
# What shows a verdict or a score as the last line of a cell.
_CHECK = re.compile(r"^check\((.*)\)$", re.MULTILINE)
_SCORE = re.compile(r"^score$", re.MULTILINE)
# A link from one page of the course to another, as "](glossary.md#rank)" and "]: 01_x.ipynb" begin.
_LINK_TO_A_PAGE = re.compile(r"(\](?:\(|: )\w+)\.(?:ipynb|md)\b")
# A few epochs do to show that everything runs.
QUICK_EPOCHS = 2
QUICK_ENVIRONMENT = {
    # What lessons do on several hosts, for which it takes root, `make cluster-test` tests.
    "HVDCOURSE_CLUSTER": "0",
    # Tests run beside: a rank that waits over MPI leaves the core to others.
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
WIDGET = "application/vnd.jupyter.widget-view+json"
# Cells in which learners look at their own work are stored without the solution's verdict.
EXERCISE_TAG = "exercise"


class NotebookFailed(RuntimeError):
    """A notebook did not run to its end; the message names it and the cell."""


@contextmanager
def state_of_its_own() -> Iterator[None]:
    """Keep the solutions' scores and progress out of the learner's for the block."""
    with (
        tempfile.TemporaryDirectory(prefix="hvdcourse-state-") as folder,
        patch.dict(os.environ, {STATE_VARIABLE: folder}),
    ):
        # A check that queues has twice the time: notebooks may run beside other work.
        os.environ.setdefault(QUEUE_VARIABLE, folder)
        yield


def run_solved(notebook: Path, output: Path, **parameters: Any) -> nbformat.NotebookNode:
    """Execute a notebook with the solutions, and write it with its outputs.

    Progress and scores go to a folder of their own, which is gone at the end.

    Args:
        notebook: the notebook, which is left as it is.
        output: where to write; also what ran until a failure is written.
        **parameters: values for the notebook's parameters, such as ``EPOCHS=2``.

    Raises:
        NotebookFailed: a cell raised, took too long, killed its kernel, or showed an unmet step.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    try:
        with state_of_its_own():
            execute_notebook(
                notebook,
                output,
                parameters={"SCRIPTS": "../solutions", **parameters},
                cwd=notebook.parent,
                kernel_name="python3",
                progress_bar=False,
                execution_timeout=CELL_SECONDS,
                kernel_manager_class=AsyncLocalKernelManager,
            )
    except PapermillExecutionError as error:
        what = f"cell {error.cell_index}: {error.ename}: {error.evalue}"
        raise NotebookFailed(f"{notebook.name}, {what}") from error
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise NotebookFailed(f"{notebook.name}, {last_cell(output)}: {error}") from error
    executed = nbformat.read(output, as_version=4)
    for number, cell in enumerate(executed.cells):
        if any(map(shows_unmet, cell.get("outputs", []))):
            raise NotebookFailed(f"{notebook.name}, cell {number}: the solution fails its check")
    return executed


def prepare(notebook: Path, output: Path, **parameters: Any) -> None:
    """Write a solved copy of a notebook, outputs included, for nbval to run and to compare.

    In the copy a check that is not met raises, and progress and scores go beside it.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    execute_notebook(
        notebook,
        output,
        parameters={"SCRIPTS": "../solutions", **parameters},
        kernel_name="python3",
        prepare_only=True,
    )
    copy = nbformat.read(output, as_version=4)
    for cell in copy.cells:
        # Beside other tests a check takes longer than a learner waits for.
        checked = rf"assert check(\1, timeout={CELL_SECONDS}).passed"
        cell.source = _SCORE.sub("assert score.passed", _CHECK.sub(checked, cell.source))
    environment = {**QUICK_ENVIRONMENT, STATE_VARIABLE: str(output.parent.resolve() / "state")}
    folder = str(notebook.parent.resolve())  # Their paths are such as ../solutions.
    source = f"import os\n\nos.chdir({folder!r})\nos.environ.update({environment!r})"
    copy.cells.insert(0, nbformat.v4.new_code_cell(source))
    nbformat.write(copy, output)


def shows_unmet(output: nbformat.NotebookNode) -> bool:
    """Whether a cell's output shows a verdict or a score that is not passed."""
    verdict = output.get("metadata", {}).get(OUTPUT_METADATA, {})
    return not verdict.get("passed", True)


def last_cell(output: Path) -> str:
    """Name the last cell that had begun when a notebook's run broke off."""
    cells = nbformat.read(output, as_version=4).cells if output.exists() else []
    begun = [n for n, cell in enumerate(cells) if cell.get("execution_count") is not None]
    return f"after cell {begun[-1]}" if begun else "before the first cell"


def write_html(executed: nbformat.NotebookNode, target: Path) -> None:
    """Write an executed notebook as an HTML page with its figures in it, and MathJax beside it."""
    page = deepcopy(executed)
    page.metadata.pop("widgets", None)
    for cell in page.cells:
        # nbconvert takes in no image from above the folder that it is given.
        cell.source = cell.source.replace("](../images/", "](images/")
        if cell.cell_type == "markdown":
            cell.source = _LINK_TO_A_PAGE.sub(r"\1.html", cell.source)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET, None)
    mathjax = target.parent / "mathjax"
    if not mathjax.exists():
        shutil.copytree(STATIC_ASSETS_PATH, mathjax)
    exporter = HTMLExporter(embed_images=True, mathjax_url=MATHJAX_URL, require_js_url="")
    about = {"path": str(PROJECT), "name": target.stem}
    html, _ = exporter.from_notebook_node(page, {"metadata": about})
    target.write_text(html)


def write_pages(folder: Path) -> None:
    """Write the pages to which the lessons link, such as the glossary, as HTML."""
    for page in NOTEBOOKS.glob("*.md"):
        text = nbformat.v4.new_markdown_cell(page.read_text())
        write_html(nbformat.v4.new_notebook(cells=[text]), folder / f"{page.stem}.html")


def portable(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return an output as it is stored: without this machine's folders, and with small images."""
    if output.output_type == "stream":
        text = output.text.replace(str(PROJECT), "/course")
        output.text = _SOURCES_OF_A_LIBRARY.sub("", text)
    data = output.get("data", {})
    # A page has no widgets: it shows the text or the picture that comes with one.
    data.pop(WIDGET, None)
    if "image/png" in data:
        data["image/png"] = of_few_colors(data["image/png"])
    return output


def of_few_colors(png: str) -> str:
    """Return a plot in base64 with a palette of 256 colors, which takes a third of the room."""
    small = BytesIO()
    image = Image.open(BytesIO(b64decode(png)))
    image.convert("RGB").quantize(256).save(small, "PNG", optimize=True)
    return b64encode(small.getvalue()).decode()


def store_outputs(notebook: Path, executed: nbformat.NotebookNode) -> None:
    """Put the outputs of a solved run into the notebook itself, which is otherwise unchanged.

    The cells are counted as they would be in a run of the notebook as it is.
    """
    original = nbformat.read(notebook, as_version=4)
    ran = {cell.id: cell for cell in executed.cells}
    code_cells = (cell for cell in original.cells if cell.cell_type == "code")
    for count, cell in enumerate(code_cells, start=1):
        is_learners = EXERCISE_TAG in cell.metadata.get("tags", [])
        cell.outputs = [] if is_learners else [portable(output) for output in ran[cell.id].outputs]
        cell.execution_count = None if is_learners else count
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
    nbformat.write(original, notebook)


def notebooks_named(names: list[str]) -> list[Path]:
    """Return the notebooks of these names; all without names. Exits for one that is not there."""
    notebooks = {path.stem: path for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))}
    unknown = [name for name in names if name not in notebooks]
    if unknown or not notebooks:
        there = ", ".join(notebooks) or "none"
        sys.exit(f"error: no notebook {' '.join(unknown)} in {NOTEBOOKS}; there are: {there}")
    return [path for name, path in notebooks.items() if name in names or not names]


def main() -> None:
    """Run all notebooks, or those named, with one line of progress each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", nargs="?", type=Path, default=PROJECT / "build" / "course")
    parser.add_argument("--in-place", action="store_true", help="store the outputs in notebooks/")
    parser.add_argument("--prepare", action="store_true", help="write copies for nbval, run none")
    parser.add_argument("--only", nargs="*", default=[], help="names of notebooks, without .ipynb")
    arguments = parser.parse_args()
    notebooks = notebooks_named(arguments.only)
    if arguments.prepare:
        for notebook in notebooks:
            prepare(notebook, PROJECT / "build" / notebook.name, EPOCHS=QUICK_EPOCHS)
        return
    failures = []
    arguments.output.mkdir(parents=True, exist_ok=True)
    write_pages(arguments.output)
    for notebook in notebooks:
        print(f"{notebook.name} … ", end="", flush=True)
        started = time.monotonic()
        try:
            executed = run_solved(notebook, arguments.output / notebook.name)
            write_html(executed, arguments.output / f"{notebook.stem}.html")
            if arguments.in_place:
                store_outputs(notebook, executed)
        except NotebookFailed as failure:
            print(f"FAILED: {failure}", flush=True)
            failures.append(failure)
        else:
            print(f"ok, {time.monotonic() - started:.0f} s", flush=True)
    if failures:
        names = "\n".join(f"  {failure}" for failure in failures)
        sys.exit(f"error: {len(failures)} of {len(notebooks)} notebooks failed:\n{names}")


if __name__ == "__main__":
    main()
