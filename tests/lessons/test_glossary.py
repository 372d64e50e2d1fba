"""The glossary: every term once, in order, and every link to a term has one."""

import re
from itertools import chain

import nbformat
import pytest

from hvdcourse.paths import NOTEBOOKS

GLOSSARY = (NOTEBOOKS / "glossary.md").read_text()
TERMS = re.findall(r"^## (?:<a id=\"[^\"]+\"></a>)?(.+)$", GLOSSARY, re.MULTILINE)


def anchor(term):
    """Return what a link to a term ends with."""
    return term.lower().replace(" ", "-")


def links(notebook):
    cells = nbformat.read(notebook, as_version=4).cells
    texts = (cell.source for cell in cells if cell.cell_type == "markdown")
    return set(chain.from_iterable(re.findall(r"\(glossary\.md#([^)]*)\)", t) for t in texts))


def test_terms_are_sorted_and_stand_once():
    names = [term.casefold() for term in TERMS]
    assert names == sorted(set(names))


def test_what_has_capitals_has_the_anchor_that_links_use():
    # JupyterLab makes an anchor of a heading as it is written, GitHub one in lower case.
    anchors = re.findall(r"^## <a id=\"([^\"]+)\"></a>", GLOSSARY, re.MULTILINE)
    assert anchors == [anchor(term) for term in TERMS if term != term.lower()]


@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_link_has_its_term(notebook):
    assert links(notebook) <= set(map(anchor, TERMS))


def test_every_term_is_linked_in_a_lesson():
    linked = set(chain.from_iterable(map(links, NOTEBOOKS.glob("*.ipynb"))))
    assert set(map(anchor, TERMS)) <= linked


def test_every_term_names_its_lesson():
    entries = GLOSSARY.split("\n## ")[1:]
    lessons = [
        re.search(r"\[Lesson (\d)\]$", text.partition("\n\n[Lesson 0]:")[0].strip())
        for text in entries
    ]
    assert all(lessons)
    targets = dict(re.findall(r"^\[Lesson (\d)\]: (.+)$", GLOSSARY, re.MULTILINE))
    assert all((NOTEBOOKS / targets[found[1]]).exists() for found in lessons)
