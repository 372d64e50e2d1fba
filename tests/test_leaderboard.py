"""Scores and the leaderboard: how they are shown, kept and shared."""

import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from rich.console import Console

from hvdcourse import leaderboard
from hvdcourse.course import NOTEBOOKS
from hvdcourse.exercises import SOLUTIONS
from hvdcourse.launch import BadInput
from hvdcourse.score import PartScore, Score

pytestmark = pytest.mark.timeout(120)


def a_score(points: float = 20) -> Score:
    parts = [PartScore("accuracy", "It learns", points, 20, "mean 0.9"),
             PartScore("resume", "It goes <on>", 0, 10, "expected: a checkpoint")]  # fmt: skip
    return Score("artists_resnet.py", parts, 1.5)


def test_a_score_is_shown_as_table_html_and_json():
    score = a_score()
    assert repr(score).splitlines()[-1] == "20 of 30 points (2 s)"
    assert "&lt;on&gt;" in score._repr_html_()
    assert "data-verdict='not met'" in score._repr_html_()
    assert json.loads(json.dumps(score.to_dict()))["points"] == 20


def test_a_name_with_brackets_is_shown_as_it_is(tmp_path):
    board = tmp_path / "board.jsonl"
    leaderboard.add(a_score(), "[red]Team[/x]", board)
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(leaderboard.table(leaderboard.read(board)))
    assert "[red]Team[/x]" in console.export_text()


def test_the_recorded_scores_are_those_of_the_programs_as_they_are():
    entries = leaderboard.read(NOTEBOOKS / "recorded" / "challenge.jsonl")
    of_programs = {one["name"]: one["script"] for one in entries}
    assert of_programs == {
        "solution": leaderboard.fingerprint(SOLUTIONS / "artists_resnet.py"),
        "untouched": leaderboard.fingerprint(SOLUTIONS / "artists_resnet_before.py"),
    }


def test_the_leaderboard_keeps_each_names_best_score_the_highest_first(tmp_path):
    board = tmp_path / "board.jsonl"
    for name, points in (("Ann", 20), ("Ben", 15), ("Ann", 5), ("  Team   3 ", 18)):
        leaderboard.add(a_score(points), name, board)
    assert [(one["name"], one["points"]) for one in leaderboard.read(board)] == [
        ("Ann", 20), ("Team 3", 18), ("Ben", 15)
    ]  # fmt: skip
    assert leaderboard.table(leaderboard.read(board)).row_count == 3


def test_damaged_lines_of_a_leaderboard_count_as_none(tmp_path):
    board = tmp_path / "board.jsonl"
    board.write_bytes(b'{"name": "Ann"}\n[1]\n\xff\n{"name": "Ben", "poi')
    leaderboard.add(a_score(), "Cleo", board)
    assert [one["name"] for one in leaderboard.read(board)] == ["Cleo"]
    assert leaderboard.read(tmp_path / "none.jsonl") == []


def test_many_scores_at_once_are_all_kept(tmp_path):
    code = """
import sys
from pathlib import Path
from hvdcourse import leaderboard
from hvdcourse.course import NOTEBOOKS
from hvdcourse.exercises import SOLUTIONS
from hvdcourse.score import PartScore, Score
for number in range(20):
    parts = [PartScore("accuracy", "", number, 20, "")]
    leaderboard.add(Score("x.py", parts, 1.0), f"{sys.argv[1]}-{number}", Path(sys.argv[2]))
"""
    board = tmp_path / "board.jsonl"
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(one), str(board)]) for one in range(4)
    ]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert len(leaderboard.read(board)) == 80
    assert len(board.read_text().splitlines()) == 80


@pytest.fixture
def umask():
    """Give new files the usual mode."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize(("folder", "file"), [(0o755, 0o644), (0o2775, 0o664), (0o1777, 0o666)])
def test_whoever_may_write_into_the_folder_may_write_to_its_board(folder, file, umask, tmp_path):
    tmp_path.chmod(folder)
    for name in ("Ann", "Ben"):
        leaderboard.add(a_score(), name, tmp_path / "board.jsonl")
        made = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        assert made == {"board.jsonl": file, ".board.jsonl.lock": file}


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming a second account needs root")
def test_a_second_account_adds_to_the_board(umask):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o1777)
        board = Path(folder, "board.jsonl")
        leaderboard.add(a_score(), "Ann", board)
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            try:
                leaderboard.add(a_score(), "Ben", board)
            except BaseException as error:
                os.write(2, repr(error).encode())
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert {one["name"] for one in leaderboard.read(board)} == {"Ann", "Ben"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any file")
def test_a_lock_that_is_not_for_this_account_is_known_before_anything_is_run(tmp_path):
    (tmp_path / ".board.jsonl.lock").touch(0o444)
    with pytest.raises(OSError, match=r"\.lock cannot be written to"):
        leaderboard.check_writable(tmp_path / "board.jsonl")


@pytest.mark.parametrize("name", ["", "  ", "x" * 41, "a\x1b[31m"])
def test_a_name_that_no_table_can_show_is_refused(name):
    with pytest.raises(BadInput, match="a name has 1 to 40 printable characters"):
        leaderboard.checked_name(name)


def test_a_leaderboard_that_cannot_be_written_is_known_before_anything_is_run(hvdcourse, tmp_path):
    wrong = str(tmp_path / "nowhere" / "board.jsonl")
    done = hvdcourse("challenge", "--name", "Ann", "--leaderboard", wrong)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {wrong}: there is no folder")
    assert len(done.stderr.splitlines()) == 1


def test_the_command_shows_the_leaderboard(hvdcourse, tmp_path):
    leaderboard.add(a_score(), "Ann", tmp_path / "board.jsonl")
    shown = hvdcourse("challenge", "--show", "--leaderboard", str(tmp_path / "board.jsonl"))
    assert shown.returncode == 0
    assert "Ann" in shown.stdout
    asked = hvdcourse("challenge", "--show", "--json", "--leaderboard", str(tmp_path / "none"))
    assert json.loads(asked.stdout) == []
