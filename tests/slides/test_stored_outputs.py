"""The slides show outputs that are stored, and a cell that they name is there, once."""

import re
from pathlib import Path

import pytest
from stored_outputs import cell_with, stored_picture, stored_text

from hvdcourse.errors import BadInput

SLIDES = Path(__file__).resolve().parent.parent.parent / "slides"
NAMED = re.compile(r'^```\{stored-(?:picture|text)\} (\w+) "(.+)"$', re.MULTILINE)
TEXTS = re.compile(r'^```\{stored-text\} (\w+) "(.+)"\n((?::.+\n)*)```$', re.MULTILINE)
DECKS = sorted(SLIDES.glob("[0-9]*.md"))
LESSON = "00_start_here"


@pytest.mark.parametrize("deck", DECKS, ids=lambda path: path.stem)
def test_every_cell_that_a_deck_names_is_in_its_notebook_once(deck):
    named = NAMED.findall(deck.read_text())
    assert len(named) == deck.read_text().count("```{stored-")
    for notebook, text in named:
        assert notebook == deck.stem
        cell_with(notebook, text.replace('\\"', '"'))


@pytest.mark.parametrize("deck", DECKS, ids=lambda path: path.stem)
def test_every_text_that_a_deck_shows_has_lines(deck):
    shown = TEXTS.findall(deck.read_text())
    assert len(shown) == deck.read_text().count("```{stored-text}")
    for notebook, text, options in shown:
        chosen = dict(re.findall(r"^:(\w+): (.+)$", options, re.MULTILINE))
        assert stored_text(notebook, text.replace('\\"', '"'), **chosen)


@pytest.mark.parametrize(
    ("notebook", "text", "said"),
    [
        ("99_nothing", "x", "no notebook '99_nothing'"),
        (LESSON, "not in any cell", "0 code cells"),
        (LESSON, "plot_training(", "2 code cells"),
    ],
)
def test_a_cell_that_is_not_there_once_is_refused(notebook, text, said):
    with pytest.raises(BadInput, match=said):
        cell_with(notebook, text)


def test_only_lines_that_match_are_shown_up_to_the_cut():
    lines = stored_text(LESSON, "def average():", lines="^rank 3", cut=", got")
    assert lines == ["rank 3 of 4: brought [  3.  30. 100.]"]


def test_what_is_not_stored_is_refused():
    with pytest.raises(BadInput, match="no stored line"):
        stored_text(LESSON, "def average():", lines="rank 7")
    with pytest.raises(BadInput, match="picture 2 of the 1 stored"):
        stored_picture(LESSON, "plot_training(runs)", 2)
