"""The lessons' cells that start ranks on several hosts; `make test` runs them on one."""

import re
from pathlib import Path

import nbformat
import pytest
from course import NOTEBOOKS, run_solved

from hvdcourse.paths import SOLUTIONS


def cells_with_hosts(lesson: str, folder: Path) -> Path:
    """Write a copy of a lesson that has these cells alone, and those that they need."""
    notebook = nbformat.read(NOTEBOOKS / f"{lesson}.ipynb", as_version=4)
    parameters, imports, *others = (one for one in notebook.cells if one.cell_type == "code")
    # What starts the ranks also sets a prediction beside the result.
    chosen = [one for one in others if re.search(r"cluster\.hosts\(|= predict\(", one.source)]
    assert any("cluster.hosts(" in one.source for one in chosen)
    notebook.cells = [parameters, imports, *chosen]
    (folder / "solutions").symlink_to(SOLUTIONS)
    (folder / "notebooks").mkdir()
    path = folder / "notebooks" / f"{lesson}.ipynb"
    nbformat.write(notebook, path)
    return path


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("lesson", "commands", "end"),
    [
        (
            "06_beyond_one_machine",
            ["horovodrun -np 4 -H node1:2,node2:1,node3:1", "mpirun --prefix"],
            "rank 3 of 4 on node3: local rank 0 of 1, cross rank 2 of 3",
        ),
        ("07_challenge", ["horovodrun -np 6 -H node1:2,node2:2,node3:2"], "mirko_stauve"),
    ],
)
def test_a_lesson_starts_ranks_on_three_hosts(lesson, commands, end, nothing_changed, tmp_path):
    executed = run_solved(cells_with_hosts(lesson, tmp_path), tmp_path / "executed.ipynb")
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    text = "".join(output.text for output in outputs if output.output_type == "stream")
    for command in commands:
        assert f"node1$ {command}" in text
    assert text.rfind(end) > text.rfind("node1$ ")
