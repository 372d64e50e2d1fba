"""What nbgrader reads of the cell in book/points.md: its value, as points."""

import os
import shutil
from pathlib import Path

import pytest
from nbclient import execute
from nbformat.v4 import new_code_cell, new_notebook
from watching import HVDCOURSE

from hvdcourse.paths import PROJECT

CELL = (PROJECT / "book" / "points" / "nbgrader_cell.py").read_text()


@pytest.fixture
def graded(tmp_path, state, monkeypatch):
    """Run the cell beside what was handed in; return what it prints, and its value."""
    monkeypatch.setenv("PATH", f"{Path(HVDCOURSE).parent}:{os.environ['PATH']}")

    def grade():
        notebook = new_notebook(cells=[new_code_cell(CELL)])
        # Nothing on stderr: it would cost all points.
        printed, value = execute(notebook, cwd=str(tmp_path)).cells[0].outputs
        assert printed.name == "stdout"
        return printed.text, value.data["text/plain"]

    return grade


def test_without_the_script_there_are_no_points_and_the_reason_is_shown(graded):
    printed, points = graded()
    assert points == "0"
    assert printed.startswith("no script 'ring_allreduce.py'")


@pytest.mark.ranks
@pytest.mark.usefixtures("nothing_left")
def test_each_step_that_is_met_is_a_point(graded, tmp_path):
    script = PROJECT / "solutions" / "ring_allreduce_after_step_03.py"
    shutil.copy(script, tmp_path / "ring_allreduce.py")
    printed, points = graded()
    assert points == "3"
    unmet = [line for line in printed.splitlines() if line.startswith("not yet: ")]
    assert unmet == ["not yet: Allgather gives every rank all chunks"]
