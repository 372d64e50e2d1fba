"""Scores and the leaderboard: how they are shown, kept and shared."""

import io
import json
import subprocess
import sys
from dataclasses import replace

import challenge_stages
import pytest
from rich.console import Console

from hvdcourse.challenge import leaderboard
from hvdcourse.challenge.report import Report
from hvdcourse.challenge.score import PartScore, Score
from hvdcourse.checks.verdict import NotRemembered
from hvdcourse.commands import challenge as command
from hvdcourse.errors import BadInput
from hvdcourse.paths import NOTEBOOKS

pytestmark = pytest.mark.timeout(120)


def a_score(points: float = 20) -> Score:
    parts = [PartScore("accuracy", "It learns", points, 20, "mean 0.9"),
             PartScore("resume", "It goes <on>", 0, 10, "expected: a checkpoint")]  # fmt: skip
    return Score("artists_resnet.py", parts, 1.5)


def test_a_score_is_shown_as_table_html_and_json():
    score = a_score()
    data, metadata = score._repr_mimebundle_()
    assert repr(score).splitlines()[-1] == "20 of 30 points (2 s)"
    assert "&lt;on&gt;" in data["text/html"]
    assert metadata == {"hvdcourse": {"passed": False}}
    assert json.loads(json.dumps(score.to_dict()))["points"] == 20


def test_a_score_shows_its_report_and_keeps_it_on_the_leaderboard(tmp_path):
    report = Report(("ann", "ben"), [[3, 1], [0, 2]], {"val_accuracy": [0.5]})
    score = replace(a_score(), report=report)
    assert "most often taken for" in score._repr_mimebundle_()[0]["text/html"]
    leaderboard.add(score, "Ann", tmp_path / "board.jsonl")
    (entry,) = leaderboard.read(tmp_path / "board.jsonl")
    assert entry["report"]["confusion"] == [[3, 1], [0, 2]]


def test_a_name_with_brackets_is_shown_as_it_is(tmp_path):
    board = tmp_path / "board.jsonl"
    leaderboard.add(a_score(), "[red]Team[/x]", board)
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(leaderboard.table(leaderboard.read(board)))
    assert "[red]Team[/x]" in console.export_text()


def test_the_recorded_scores_are_those_of_the_programs_as_they_are(tmp_path):
    entries = leaderboard.read(NOTEBOOKS / "recorded" / "challenge.jsonl")
    digests = {}
    for name, text in challenge_stages.programs().items():
        (tmp_path / "program.py").write_text(text)
        digests[name] = leaderboard.digest_of_script(tmp_path / "program.py")
    assert {entry["name"]: entry["script"] for entry in entries} == digests
    assert set(digests) == {"untouched", "right, but slow", "right and fast", "solution"}
    with_report = {entry["name"] for entry in entries if "report" in entry}
    assert with_report == set(digests) - {"untouched"}


def test_the_leaderboard_keeps_each_names_best_score_the_highest_first(tmp_path):
    board = tmp_path / "board.jsonl"
    for name, points in (("Ann", 20), ("Ben", 15), ("Ann", 5), ("  Team   3 ", 18)):
        leaderboard.add(a_score(points), name, board)
    assert [(entry["name"], entry["points"]) for entry in leaderboard.read(board)] == [
        ("Ann", 20), ("Team 3", 18), ("Ben", 15)
    ]  # fmt: skip
    assert leaderboard.table(leaderboard.read(board)).row_count == 3


def test_damaged_lines_of_a_leaderboard_count_as_none(tmp_path):
    board = tmp_path / "board.jsonl"
    board.write_bytes(b'{"name": "Ann"}\n[1]\n\xff\n{"name": "Ben", "poi')
    leaderboard.add(a_score(), "Cleo", board)
    assert [entry["name"] for entry in leaderboard.read(board)] == ["Cleo"]
    assert leaderboard.read(tmp_path / "none.jsonl") == []


def test_many_scores_at_once_are_all_kept(tmp_path):
    code = """
import sys
from pathlib import Path
from hvdcourse.challenge import leaderboard
from hvdcourse.paths import NOTEBOOKS, SOLUTIONS
from hvdcourse.challenge.score import PartScore, Score
for number in range(20):
    parts = [PartScore("accuracy", "", number, 20, "")]
    leaderboard.add(Score("x.py", parts, 1.0), f"{sys.argv[1]}-{number}", Path(sys.argv[2]))
"""
    board = tmp_path / "board.jsonl"
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(writer), str(board)])
        for writer in range(4)
    ]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert len(leaderboard.read(board)) == 80
    assert len(board.read_text().splitlines()) == 80


@pytest.mark.parametrize("name", ["", "  ", "x" * 41, "a\x1b[31m"])
def test_a_name_that_no_table_can_show_is_refused(name):
    with pytest.raises(BadInput, match="a name has 1 to 40 printable characters"):
        leaderboard.checked_name(name)


def test_a_leaderboard_that_cannot_be_written_is_told_after_the_score(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "challenge", lambda folder, data, say: a_score())
    console = Console(width=120, record=True, file=io.StringIO())
    with pytest.raises(NotRemembered, match=f"Is a directory: '{tmp_path}'"):
        command.judge_and_show(console, None, "painters", "Ann", tmp_path, False)
    assert "20 of 30 points" in console.export_text()


def test_the_command_shows_the_leaderboard(hvdcourse, tmp_path):
    leaderboard.add(a_score(), "Ann", tmp_path / "board.jsonl")
    shown = hvdcourse("challenge", "--show", "--leaderboard", str(tmp_path / "board.jsonl"))
    assert shown.returncode == 0
    assert "Ann" in shown.stdout
    asked = hvdcourse("challenge", "--show", "--json", "--leaderboard", str(tmp_path / "none"))
    assert json.loads(asked.stdout) == []
