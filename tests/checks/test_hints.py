"""Hints: three for every step, and a question about what the check saw."""

import ast
import re

import nbformat
import pytest

from hvdcourse.checks.hints import FOLDER, LEVELS, SHARED, hints_for, read_hints
from hvdcourse.checks.manifest import EXERCISES
from hvdcourse.paths import PROJECT

STEPS = [(exercise.name, step.number) for exercise in EXERCISES for step in exercise.steps]


def words_of_programs() -> list[str]:
    """Return the texts of checks and runs, with _ for what varies, and of the mistakes' tests."""
    folders = [PROJECT / folder for folder in ("hvdcourse/checks", "hvdcourse/launch")]
    folders += [PROJECT / "tests" / "mistakes"]
    texts = []
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = (getattr(part, "value", None) for part in node.values)
                texts.append("".join(part if isinstance(part, str) else "_" for part in parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return texts


WORDS = words_of_programs()


@pytest.mark.parametrize(("name", "step"), STEPS)
def test_a_step_has_three_hints_that_give_more_and_more_away(name, step):
    hints = hints_for(name, step)
    assert len(set(hints)) == len(hints) == len(LEVELS)
    assert hints.question.endswith("?") or "?" in hints.question
    assert "…" in hints.shape


def test_every_file_of_hints_is_that_of_an_exercise_and_of_its_steps():
    files = {path.stem for path in FOLDER.glob("*.yaml")}
    assert files == {exercise.name for exercise in EXERCISES} | {SHARED}
    for exercise in EXERCISES:
        assert list(read_hints(exercise.name)) == [step.number for step in exercise.steps]


@pytest.mark.parametrize("name", [SHARED, *(exercise.name for exercise in EXERCISES)])
def test_questions_are_about_words_that_a_verdict_can_have(name):
    steps = [{"if_seen": read_hints(name)}] if name == SHARED else read_hints(name).values()
    for words in (words for step in steps for words in step.get("if_seen", {})):
        assert any(words in text for text in WORDS), words


@pytest.mark.parametrize(("name", "step"), STEPS)
def test_a_section_that_a_hint_names_is_in_the_lesson(name, step):
    for lesson, heading in re.findall(r'Lesson (\d)[^."]*"([^"]+)"', hints_for(name, step).place):
        (notebook,) = (PROJECT / "notebooks").glob(f"0{lesson}_*.ipynb")
        cells = nbformat.read(notebook, nbformat.NO_CONVERT).cells
        lines = [line for cell in cells for line in cell.source.splitlines()]
        assert any(line.startswith("##") and heading in line for line in lines), heading


def test_the_question_is_about_what_the_check_saw():
    usual = hints_for("fashion_mnist", 3)
    about = hints_for("fashion_mnist", 3, "rank 1: its updates use only its own gradients")
    assert about.question != usual.question
    assert about[1:] == usual[1:]
    assert hints_for("fashion_mnist", 3, "something else") == usual


def test_a_steps_own_question_comes_before_one_that_exercises_share():
    seen = "Rank 0 was waiting in allreduce"
    own = hints_for("lab_one_image_more", 1, seen).question
    assert own != hints_for("lab_drift_after_resume", 1, seen).question


def test_levels_come_one_after_the_other():
    hints = hints_for("lamb", 2)
    assert hints.question in hints.in_words(1)
    assert hints.place not in hints.in_words(1)
    assert hints.place in hints.in_words(2)
    assert "    m_hat = m / (1 - …)" in hints.in_words(3).splitlines()
