"""Records where the disk is full, the installation shared, or several processes write at once."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hvdcourse.checks.progress import all_progress, remember
from hvdcourse.checks.verdict import ExerciseVerdict, StepVerdict

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("nothing_left")]

NOBODY = 65534
EARLIER = {"mpi_concepts": {"steps": {"1": True, "2": True}, "checked": "2026-01-01T10:00:00"}}


def keep_earlier(folder: Path) -> Path:
    """Write an earlier progress file and return it."""
    folder.mkdir(exist_ok=True)
    path = folder / "progress.json"
    path.write_text(json.dumps(EARLIER))
    return path


def assert_verdict_and_one_message(done: subprocess.CompletedProcess, said: str) -> None:
    assert "steps met" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: progress was not kept: ")
    assert said in line
    assert done.returncode == 1


@pytest.mark.ranks
def test_records_that_cannot_be_kept_leave_the_verdict_and_one_message(hvdcourse, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    done = hvdcourse("check", "ring_allreduce", HVDCOURSE_STATE=str(tmp_path / "file" / "state"))
    assert_verdict_and_one_message(done, "Not a directory")


@pytest.fixture
def full_disk(small_disk):
    """A disk with an earlier progress file and no room for another."""
    folder = small_disk(16)
    keep_earlier(folder)
    with pytest.raises(OSError, match="No space left"), (folder / "filler").open("wb") as file:
        file.write(bytes(64 * 1024))
    return folder


@pytest.mark.ranks
def test_a_full_disk_leaves_the_verdict_one_message_and_the_earlier_record(hvdcourse, full_disk):
    done = hvdcourse("check", "ring_allreduce", HVDCOURSE_STATE=str(full_disk))
    assert_verdict_and_one_message(done, "No space left on device")
    assert json.loads((full_disk / "progress.json").read_text()) == EARLIER
    assert {path.name for path in full_disk.iterdir()} <= {
        "progress.json", "progress.lock", "filler"
    }  # fmt: skip


def test_a_reset_on_a_full_disk_leaves_the_script_as_it_is(hvdcourse, full_disk, project):
    script = project / "source_code" / "ring_allreduce.py"
    script.write_text("# my own work\n" * 1000)
    done = hvdcourse("reset", "ring_allreduce", HVDCOURSE_STATE=str(full_disk))
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert script.read_text() == "# my own work\n" * 1000


@pytest.mark.parametrize("text", ["", "{", '{"mpi_concepts": ', "\x00\x01"])
def test_a_damaged_record_counts_as_none(text, in_process, state):
    state.mkdir()
    (state / "progress.json").write_text(text)
    done = in_process("progress", "--json")
    assert done.returncode == 0
    assert {row["met"] for row in json.loads(done.stdout)} == {0}


def test_a_step_that_was_not_judged_stays_what_it_was(state):
    def remembered(passed, not_judged):
        step = StepVerdict(1, "", passed, "", [], run_failed=not_judged)
        remember(ExerciseVerdict("lamb", "lamb.py", [step], None, 0.0))
        return next(row["steps"]["1"] for row in all_progress() if row["exercise"] == "lamb")

    assert remembered(passed=False, not_judged=True) is False
    assert remembered(passed=True, not_judged=False) is True
    assert remembered(passed=False, not_judged=True) is True
    assert remembered(passed=False, not_judged=False) is False


def test_many_records_at_once_are_all_kept(tmp_path, project):
    """Six processes each keep one step of their own, again and again."""
    code = """
import sys
from hvdcourse.checks.progress import remember
from hvdcourse.checks.verdict import ExerciseVerdict, StepVerdict
step = StepVerdict(int(sys.argv[1]), "", True, "", [])
for _ in range(20):
    remember(ExerciseVerdict("mpi_concepts", "x.py", [step], None, 0.0))
"""
    environment = {**os.environ, "HVDCOURSE_STATE": str(tmp_path / "state")}
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(step)], env=environment, cwd=project)
        for step in range(1, 7)
    ]
    assert [process.wait() for process in processes] == [0] * 6
    kept = json.loads((tmp_path / "state" / "progress.json").read_text())
    assert kept["mpi_concepts"]["steps"] == {str(step): True for step in range(1, 7)}


@pytest.fixture
def shared(project, tmp_path, monkeypatch):
    """Make the project one that its user may only read; returns the user's command line and home.

    The tests of root have an ordinary user, nobody, who may also pass root's closed folders: in
    them may lie Python, and does what a test writes.
    """
    monkeypatch.delenv("HVDCOURSE_STATE", raising=False)
    home = tmp_path / "home"
    home.mkdir()
    for path in [project, *project.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    prefix = []
    if os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
        prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        sets = ("bounding-set", "inh-caps", "ambient-caps")
        prefix += [f"--{name}=-all,+dac_read_search" for name in sets]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode:
            pytest.skip("root may not become another user here")
    yield {"prefix": prefix, "HOME": str(home), "XDG_STATE_HOME": str(home)}
    for path in [project, *project.rglob("*")]:
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


@pytest.mark.ranks
def test_in_a_shared_installation_run_and_check_work(hvdcourse, project, shared):
    arguments = ["ring_allreduce.py", "--backend", "mpi", "--", "--lengths", "3"]
    done = hvdcourse("run", *arguments, **shared)
    assert (done.returncode, done.stderr) == (0, "")
    done = hvdcourse("check", "ring_allreduce", **shared)
    assert (done.returncode, done.stderr) == (1, "")
    assert "0 of 4 steps met" in done.stdout
    assert (Path(shared["HOME"]) / "hvdcourse" / "progress.json").exists()
    assert not (project / ".hvdcourse").exists()


def test_in_a_shared_installation_a_reset_is_one_message(hvdcourse, shared):
    done = hvdcourse("reset", "ring_allreduce", **shared)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert "ring_allreduce" in line
