"""Predictions: entered, kept, and set beside the result."""

import pytest
from nbclient import execute
from nbformat.v4 import new_code_cell, new_notebook

from hvdcourse import predict
from hvdcourse.checks.progress import STATE_VARIABLE


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    return tmp_path


QUESTION = "How many times as fast are two ranks?"


def test_a_number_is_kept_and_compared(capsys):
    predict(QUESTION, unit="times").field.value = "1.5"
    again = predict(QUESTION, unit="times")
    assert again.field.value == "1.5"
    capsys.readouterr()
    again.compare(1.7712)
    assert capsys.readouterr().out == "You predicted 1.5 times. The result: 1.77 times.\n"


@pytest.mark.parametrize(
    ("entered", "answer", "told"),
    [
        ("1,8", 1.8, "1.8 times"),
        ("1.8", 1.8, "1.8 times"),
        ("16,384", 16_384, "16,384 times"),
        ("16384", 16_384, "16,384 times"),
        ("1,024.5", 1024.5, "1,024 times"),
        ("2 times", 2, "2 times"),
    ],
)
def test_a_comma_stands_for_thousands_or_for_a_point_and_the_note_tells_what_is_kept(
    entered, answer, told
):
    prediction = predict(QUESTION, unit="times")
    prediction.field.value = entered
    assert prediction.answer == answer
    assert prediction.note.value == f"Your prediction, {told}, is kept: go on with the next cell."


def test_what_is_no_number_is_refused_and_what_was_entered_before_stays():
    prediction = predict(QUESTION)
    prediction.field.value = "2"
    prediction.field.value = "twice"
    assert "'twice'" in prediction.note.value
    assert predict(QUESTION).answer == 2


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ("all", "The result: all, as you predicted.\n"),
        ("none", "You predicted none. The result: all.\n"),
    ],
)
def test_an_option_is_kept_and_compared(chosen, told, capsys):
    predict("Which ranks?", ["none", "all"]).field.value = chosen
    prediction = predict("Which ranks?", ["none", "all"])
    capsys.readouterr()
    prediction.compare("all")
    assert capsys.readouterr().out == told


def test_an_option_that_is_no_more_to_choose_from_counts_as_nothing_entered(capsys):
    predict("Which ranks?", ["none", "all"]).field.value = "none"
    predict("Which ranks?", ["one", "all"]).compare("all")
    assert "You have entered no prediction." in capsys.readouterr().out


def test_a_static_page_shows_the_question_and_its_options():
    assert repr(predict("Which ranks?", ["one", "all"])) == (
        "Which ranks?\n( ) one\n( ) all\n(Run this cell to answer.)"
    )


def test_beside_the_result_a_field_becomes_text_which_a_notebook_shows_without_its_kernel():
    cells = [
        "from hvdcourse import predict",
        "rate, ranks = predict('Rate?', unit='times'), predict('Ranks?', ['one', 'all'])",
        "rate.compare(2)",
        "rate.field.value, ranks.field.value = '1.5', 'all'",
        "rate.compare(2), ranks.compare('all')",
    ]

    def shown(count):
        notebook = execute(new_notebook(cells=list(map(new_code_cell, cells[:count]))))
        return [output.data for output in notebook.cells[1].outputs]

    assert all("application/vnd.jupyter.widget-view+json" in data for data in shown(4))
    assert shown(5) == [
        {"text/plain": f"{entered}\n(Your prediction. Run this cell to change it.)"}
        for entered in ("Rate?\n1.5 times", "Ranks?\n( ) one\n(x) all")
    ]


def test_a_damaged_file_counts_as_nothing_entered(state):
    (state / "predictions.json").write_text("{")
    prediction = predict(QUESTION)
    assert prediction.answer is None
    prediction.field.value = "3"
    assert predict(QUESTION).answer == 3
