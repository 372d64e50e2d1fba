"""The glossary: every term once, in order, and every link to a term has one."""

import re
from itertools import chain

import nbformat
import pytest

from hvdcourse.paths import NOTEBOOKS

GLOSSARY = (NOTEBOOKS / "glossary.md").read_text()
TERMS = re.findall(r"^## (?:<a id=\"[^\"]+\"></a>)?(.+)$", GLOSSARY, re.MULTILINE)

# Words of nearly every page, and some that are ordinary words, too.
EVERYDAY = {
    *("batch", "device", "epoch", "gradient", "host", "job", "loss", "process", "rank", "sample"),
    *("seed", "size", "step", "weight", "commit", "moment", "root"),
}
# There the word stands for something else.
OTHER_SENSE = {
    ("04_convergence", "plateau"),
    ("04_convergence", "scheduler"),
    ("08_reading_results", "overlap"),
}
# Code, formulas, figures, links, tags, headings, and titles of papers.
NO_PROSE = re.compile(
    r"```.*?```|<pre>.*?</pre>|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$|!?\[[^\]]*\]\([^)]*\)|<[^>\n]+>"
    r"|^#+ [^\n]*$|^    [^\n]*$|^- [^\n]*\(https?://[^\n]*$",
    re.DOTALL | re.MULTILINE,
)


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


@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_lesson_links_a_term_where_it_first_uses_it(notebook):
    # The two cells at the top say what the lesson is about, and the recorded verdicts are output.
    cells = [
        cell.source if cell.cell_type == "markdown" and not cell.metadata.get("tags") else ""
        for cell in nbformat.read(notebook, as_version=4).cells
    ]
    texts = [NO_PROSE.sub(" ", cell) for cell in cells]
    unlinked = []
    for term in set(TERMS) - EVERYDAY:
        flags = re.IGNORECASE if term == term.lower() else 0
        use = re.compile(rf"(?<![\w-]){re.escape(term)}(s|es)?(?![\w-])", flags)
        first = next((n for n, text in enumerate(texts) if n > 1 and use.search(text)), None)
        linked = first is not None and any(
            f"(glossary.md#{anchor(term)})" in cell for cell in cells[: first + 1]
        )
        if first is not None and not linked and (notebook.stem, term) not in OTHER_SENSE:
            unlinked.append(f"{term!r} in cell {first}")
    assert unlinked == []


def test_every_term_names_its_lesson():
    entries = GLOSSARY.split("\n## ")[1:]
    lessons = [
        re.search(r"\[Lesson (\d)\]$", text.partition("\n\n[Lesson 0]:")[0].strip())
        for text in entries
    ]
    assert all(lessons)
    targets = dict(re.findall(r"^\[Lesson (\d)\]: (.+)$", GLOSSARY, re.MULTILINE))
    assert all((NOTEBOOKS / targets[found[1]]).exists() for found in lessons)
