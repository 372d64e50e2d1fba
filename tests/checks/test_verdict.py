"""Verdicts for people and for programs: in a terminal, in a notebook, and in files."""

import html
import io
import re
from dataclasses import replace

import pytest
from IPython.core.formatters import DisplayFormatter
from junitparser import JUnitXml
from rich.console import Console

from hvdcourse.checks.display import MET, PARTLY, UNMET
from hvdcourse.checks.hints import LEVELS, hints_for
from hvdcourse.checks.verdict import ExerciseVerdict, StepVerdict

MOVING_THE_CURSOR = "\x1b[A 50 % <done>\x00"


def verdict_of(*steps: StepVerdict, failure: str | None = None) -> ExerciseVerdict:
    return ExerciseVerdict("lamb", "lamb.py", list(steps), failure, 1.0)


def met(number: int) -> StepVerdict:
    return StepVerdict(number, "It trains", True, "", [])


def unmet(number: int, *lines: str, run_failed: bool = False) -> StepVerdict:
    return StepVerdict(number, "It stops", False, "it ends", list(lines), run_failed)


def shown(verdict: ExerciseVerdict) -> tuple[dict, dict]:
    """Return the data and the metadata that a notebook stores of a verdict."""
    return DisplayFormatter().format(verdict)


def text_of(html: str) -> str:
    return re.sub("<[^>]+>", "", html)


def test_junit_takes_what_moves_a_terminals_cursor(tmp_path):
    verdict_of(unmet(1, MOVING_THE_CURSOR, "β")).write_junit(tmp_path / "report.xml")
    (suite,) = JUnitXml.fromfile(str(tmp_path / "report.xml"))
    ((failure,),) = [case.result for case in suite]
    assert failure.text == "\ufffd[A 50 % <done>\ufffd\nβ"


@pytest.mark.parametrize(("steps", "passed"), [((met(1),), True), ((met(1), unmet(2)), False)])
def test_a_notebook_stores_whether_a_verdict_is_passed(steps, passed):
    _, metadata = shown(verdict_of(*steps))
    assert metadata["hvdcourse"] == {"passed": passed}


def test_a_line_under_a_traceback_that_only_points_is_left_out_where_lines_are_broken():
    seen = ['  File "a.py", line 3, in f', "    total = g(a) + 1 / b", "            ~~^~~", "^^^"]
    assert unmet(1, *seen).told.splitlines()[:-1] == seen[:2]


def test_a_notebook_shows_the_same_table_as_a_terminal():
    verdict = verdict_of(met(1), unmet(2, "rank 0: <b>1</b> & [red]2[/red]"))
    data, _ = shown(verdict)
    console = Console(file=io.StringIO(), width=100)
    console.print(verdict)
    table = console.file.getvalue()
    assert "rank 0: <b>1</b> & [red]2[/red]" in table
    assert "rank 0: &lt;b&gt;1&lt;/b&gt; &amp; [red]2[/red]" in data["text/html"]
    assert text_of(data["text/html"]).split()[:12] == table.split()[:12]
    assert data["text/plain"].splitlines()[:2] == ["step 1: met", "step 2: not yet"]


def test_words_say_what_colors_say():
    data, _ = shown(verdict_of(met(1), unmet(2)))
    assert "not yet" in text_of(data["text/html"])
    assert "met" in text_of(data["text/html"])


def luminance(color: str) -> float:
    """Return the relative luminance of a color in #rrggbb, 0 to 1 (WCAG 2.1)."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("style", [MET, PARTLY, UNMET])
@pytest.mark.parametrize("background", ["#ffffff", "#111111"])
def test_colors_can_be_read_on_light_and_on_dark(style, background):
    lighter, darker = sorted((luminance(style.split()[1]), luminance(background)), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) > 4


def test_a_failed_run_is_told_of_once_and_under_no_step():
    steps = [unmet(number, "rank 1 crashed", run_failed=True) for number in (1, 2)]
    verdict = verdict_of(met(3), *steps, failure="rank 1 crashed")
    assert verdict.rows() == [[met(3)], steps]
    assert in_terminal(verdict).count("rank 1 crashed") == 1
    assert "It stops" not in in_terminal(verdict)


def test_a_step_that_no_run_could_show_is_not_judged():
    shown, _ = verdict_of(unmet(1, "rank 1 crashed", run_failed=True))._repr_mimebundle_()
    assert "not judged" in shown["text/html"]
    assert "not yet" not in shown["text/html"]


def test_a_line_follows_the_last_one_or_a_scroll_bar_would_cover_it():
    shown, _ = verdict_of(unmet(1, "twice"))._repr_mimebundle_()
    table, _, _ = shown["text/html"].partition("</pre>")
    assert table.endswith("\n\n")


def test_a_step_that_expects_what_a_failed_run_does_is_judged_by_itself():
    steps = [unmet(number, "the same") for number in (1, 2)]
    assert verdict_of(*steps).rows() == [[step] for step in steps]


def in_terminal(verdict: ExerciseVerdict) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(verdict)
    return console.file.getvalue()


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_terminal_shows_as_many_hints_as_were_asked_for(level):
    verdict = replace(verdict_of(met(1), unmet(2, "m is zero")), hint_level=level)
    hints = hints_for("lamb", 2)
    shown_hints = [hint.splitlines()[0] in in_terminal(verdict) for hint in hints]
    assert shown_hints == [number < level for number in range(3)]
    kept = verdict.to_dict()["steps"]
    assert [step.get("hints") for step in kept] == (
        [[], list(hints[:level])] if level else [None] * 2
    )


def test_a_notebook_folds_the_hints_for_the_first_step_or_for_all_if_asked():
    verdict = verdict_of(met(1), unmet(2, "r is 2 times what it should be"), unmet(3, "u is zero"))
    first = hints_for("lamb", 2, verdict.steps[1].told)
    assert first.question != hints_for("lamb", 2).question
    page = shown(verdict)[0]["text/html"]
    below = page[page.index("<details>") :]
    assert below.count("<details>") == below.count("</details>") == len(LEVELS)
    assert all(hint in html.unescape(below) for hint in first)
    assert hints_for("lamb", 3).question not in html.unescape(page)
    asked = shown(replace(verdict, hint_level=1))[0]["text/html"]
    assert hints_for("lamb", 3).question in html.unescape(asked)


def test_a_failed_run_brings_hints_only_where_it_concerns_one_step():
    hung = unmet(1, WAITING, run_failed=True)
    assert verdict_of(hung, unmet(2, run_failed=True)).hinted == []
    for verdict in (verdict_of(hung), verdict_of(hung, met(2))):
        ((_, hints),) = verdict.hinted
        assert hints.question != hints_for("lamb", 1).question


WAITING = "Rank 0 was waiting in allreduce"


def test_a_failed_run_that_concerns_several_steps_brings_a_question_about_itself():
    steps = [unmet(number, WAITING, run_failed=True) for number in (1, 2)]
    verdict = verdict_of(*steps, failure=WAITING)
    page = html.unescape(shown(verdict)[0]["text/html"])
    asked = "The verdict names the line in which each rank waits."
    assert page.count("<details>") == page.count(asked) == 1
    assert all(hints_for("lamb", number).place not in page for number in (1, 2))
    assert asked not in in_terminal(verdict)
    assert asked in in_terminal(replace(verdict, hint_level=1))
    other = verdict_of(*steps, failure="something that nobody has foreseen")
    assert "<details>" not in shown(other)[0]["text/html"]
