"""Finds what a cell of a lesson's notebook has stored: the slides show it, and copy no number.

A cell is named by a text that stands in it and in no other code cell of its notebook.
"""

import re
from collections.abc import Mapping
from typing import Any

import nbformat

from hvdcourse.errors import BadInput
from hvdcourse.paths import NOTEBOOKS

_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def cell_with(notebook: str, text: str) -> Mapping[str, Any]:
    """Return the one code cell of a notebook that holds a text.

    Args:
        notebook: the notebook's name, without ``.ipynb``.
        text: what stands in one code cell alone.

    Raises:
        BadInput: there is no such notebook, no such cell, or more than one.
    """
    path = NOTEBOOKS / f"{notebook}.ipynb"
    if not path.exists():
        raise BadInput(f"no notebook {notebook!r} in {NOTEBOOKS.name}/: write its name as there")
    cells = [
        cell
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "code" and text in cell.source
    ]
    if len(cells) != 1:
        raise BadInput(
            f"{len(cells)} code cells of {notebook} hold {text!r}: name a text that is in one alone"
        )
    return cells[0]


def stored_picture(notebook: str, text: str, number: int = 1) -> str:
    """Return a picture that a cell has stored, as PNG in base64.

    Args:
        notebook: the notebook's name.
        text: what names the cell, see ``cell_with``.
        number: which of the cell's pictures, counted from 1.

    Raises:
        BadInput: the cell has not stored so many pictures, or there is no such cell.
    """
    outputs = cell_with(notebook, text).get("outputs", [])
    pictures = [
        output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})
    ]
    if not 1 <= number <= len(pictures):
        raise BadInput(f"{notebook}, {text!r}: picture {number} of the {len(pictures)} stored ones")
    return "".join(pictures[number - 1].split())


def stored_text(notebook: str, text: str, lines: str = "", cut: str = "") -> list[str]:
    """Return lines that a cell has stored, without colors, and without empty ones.

    Args:
        notebook: the notebook's name.
        text: what names the cell, see ``cell_with``.
        lines: a regular expression; only lines in which it is found are kept.
        cut: a regular expression; a line ends where it is found.

    Raises:
        BadInput: no line is left, or there is no such cell.
    """
    texts = [
        output.get("text", "") or output.get("data", {}).get("text/plain", "")
        for output in cell_with(notebook, text).get("outputs", [])
        # What a picture says of itself as text is not for readers.
        if "image/png" not in output.get("data", {})
    ]
    stored = _COLOR.sub("", "\n".join(texts)).splitlines()
    kept = [line for line in stored if line.strip() and re.search(lines, line)]
    if not kept:
        raise BadInput(f"{notebook}, {text!r}: no stored line has {lines!r}")
    return [re.split(cut, line)[0].rstrip() if cut else line.rstrip() for line in kept]
