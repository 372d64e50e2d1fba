"""A course that is installed once: each learner has scripts and progress in a copy of their own."""

import json
import shutil

import pytest

from hvdcourse.checks.progress import STATE_VARIABLE
from hvdcourse.paths import COPY_VARIABLE

RING = "ring_allreduce.py"


@pytest.fixture
def copy(tmp_path, project, monkeypatch):
    """A learner's copy of the course, whose scripts have been worked on."""
    folder = tmp_path / "home" / "hvdcourse"
    shutil.copytree(project / "source_code", folder / "source_code")
    (folder / "source_code" / RING).write_text("# my own work\n")
    monkeypatch.setenv(COPY_VARIABLE, str(folder))
    monkeypatch.delenv(STATE_VARIABLE, raising=False)
    return folder


def test_a_reset_restores_the_learners_script_and_keeps_theirs_beside_it(hvdcourse, project, copy):
    shared = (project / "source_code" / RING).read_text()
    assert hvdcourse("reset", "ring_allreduce").returncode == 0
    assert (copy / "source_code" / RING).read_text() == shared
    (kept,) = (copy / ".hvdcourse").glob("ring_allreduce_*.py")
    assert kept.read_text() == "# my own work\n"
    assert not (project / ".hvdcourse").exists()


@pytest.mark.ranks
def test_a_check_judges_the_learners_script_and_keeps_progress_in_the_copy(
    hvdcourse, project, copy
):
    # It is checked fastest, without TensorFlow where it is not forked.
    script = copy / "source_code" / "timeline.py"
    script.write_text((project / "solutions" / "timeline.py").read_text())
    done = hvdcourse("check", "timeline", "--json", HVDCOURSE_FORK="0")
    verdict = json.loads(done.stdout)
    assert verdict["passed"], done.stdout
    assert verdict["script"] == str(script)
    kept = json.loads((copy / ".hvdcourse" / "progress.json").read_text())
    assert all(kept["timeline"]["steps"].values())
    assert not (project / ".hvdcourse").exists()
