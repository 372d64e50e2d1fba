"""What a section says of its recorded run is in its cells: in their outputs, or in their code."""

import re

import nbformat
import pytest

from hvdcourse.paths import PROJECT

NOTEBOOKS = sorted((PROJECT / "notebooks").glob("*.ipynb"))
# Measured numbers such as 0.83, 3,662, 98 % and 27 ms, and no counts such as 4 ranks.
PRECISE = re.compile(
    r"(?<![\w.,])(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\d+(?= (?:%|ms|seconds|images/s)))"
    r"(?![\w.]*\d)( %)?"
)
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
FORMULA_OR_LINK = re.compile(r"\$[^$]*\$|\]\([^)]*\)|`[^`]*`")


def sections(notebook):
    """Return the cells of each section."""
    parts = [[]]
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and re.match("##? ", cell.source):
            parts.append([])
        parts[-1].append(cell)
    return parts


def claims(cells):
    """Return the paragraphs that say what the recorded run of some cells shows."""
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    paragraphs = [part for text in texts for part in re.split(r"\n\s*\n", text)]
    signs = ("in the recorded run", "**what happened.**")
    return [text for text in paragraphs if any(sign in text.lower() for sign in signs)]


def numbers_of(cells):
    """Return all numbers that some cells have printed, and those of their code."""
    code = [cell for cell in cells if cell.cell_type == "code"]
    outputs = [out for cell in code for out in cell.outputs]
    texts = [out.get("text", "") or out.get("data", {}).get("text/plain", "") for out in outputs]
    texts += [cell.source.replace("_", "") for cell in code]
    return [float(found.replace(",", "")) for text in texts for found in NUMBER.findall(text)]


def missing(notebook):
    """Return the precise numbers of the claims that no number of their section rounds to."""
    lacking = []
    for cells, claim in [(part, one) for part in sections(notebook) for one in claims(part)]:
        numbers = numbers_of(cells)
        for text, percent in PRECISE.findall(FORMULA_OR_LINK.sub("", claim)):
            value, digits = float(text.replace(",", "")), len(text.partition(".")[2])
            factors = (1, 100) if percent else (1,)
            if not any(round(f * n, digits) == value for n in numbers for f in factors):
                lacking.append(f"{text}{percent}: {claim[:80]}")
    return lacking


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_numbers_of_the_recorded_run_are_in_its_outputs(path):
    assert missing(nbformat.read(path, as_version=4)) == []


def test_a_number_that_parts_from_its_output_is_found():
    cells = [
        nbformat.v4.new_markdown_cell("In the recorded run 98.3 % are right, at 3,662 images/s."),
        nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("stream", text="0.9834 3661.9")]),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    assert missing(notebook) == []
    cells[1].outputs[0].text = "0.9721 3661.9"
    (one,) = missing(notebook)
    assert one.startswith("98.3 %")
