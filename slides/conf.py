"""Sphinx's settings for `make slides`: decks for reveal.js that ask no other host for anything."""

import sys
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from jupyter_server_mathjax.app import STATIC_ASSETS_PATH
from sphinx.application import Sphinx
from sphinx.ext.mathjax import html_visit_displaymath, html_visit_math
from sphinx.util.docutils import SphinxDirective
from sphinx_revealjs._ext.notes import revealjs_notes

sys.path.insert(0, str(Path(__file__).parent))

from stored_outputs import stored_picture, stored_text

from hvdcourse.errors import BadInput

project = "Scaling Deep Learning with Horovod"
author = "the authors of the course"
language = "en"
extensions = ["myst_parser", "sphinx_revealjs"]
myst_enable_extensions = ["dollarmath"]
myst_update_mathjax = False

revealjs_style_theme = "white"
revealjs_css_files = ["slides.css"]
revealjs_static_path = [str(Path(__file__).parent / "_static"), str(STATIC_ASSETS_PATH)]
WIDTH, HEIGHT = 1280, 720
revealjs_script_conf = {
    "width": WIDTH,
    "height": HEIGHT,
    "hash": True,
    "slideNumber": "c/t",
    "transition": "none",
    # MathJax measures what it sets, and cannot measure what is not laid out.
    "viewDistance": 100,
    "mobileViewDistance": 100,
    "mathjax2": {
        "mathjax": "_static/MathJax.js",
        "config": "TeX-AMS-MML_HTMLorMML-full,Safe",
        "tex2jax": {"inlineMath": [["\\(", "\\)"]]},
        # The only fonts that jupyter_server_mathjax brings.
        "HTML-CSS": {"availableFonts": [], "webFont": "STIX-Web", "imageFont": None},
    },
}
revealjs_script_plugins = [
    {"src": "revealjs/plugin/notes/notes.js", "name": "RevealNotes"},
    {"src": "revealjs/plugin/math/math.js", "name": "RevealMath.MathJax2"},
]
html_math_renderer = "reveal"

# Pixels: a line of stored text fills the slide, but is no larger than this.
LARGEST_TEXT = 26
LETTER_WIDTH = 0.62  # of a monospaced letter, in parts of its height


class Stored(SphinxDirective):
    """What a cell has stored: the notebook, and in quotes a text that is in this cell alone."""

    required_arguments = 2
    final_argument_whitespace = True

    def cell(self) -> tuple[str, str]:
        """Return the notebook's name and the text."""
        notebook, text = self.arguments
        return notebook, text.strip()[1:-1].replace('\\"', '"')

    def html(self) -> str:
        """Return what the slide shows."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Return one node of HTML; a cell that is not there fails the build."""
        try:
            return [nodes.raw("", self.html(), format="html")]
        except BadInput as error:
            raise self.error(str(error)) from error


class StoredPicture(Stored):
    """A plot that a cell has stored; the directive's content is its text alternative."""

    has_content = True
    option_spec: ClassVar = {"number": directives.positive_int}

    def html(self) -> str:
        """Return the picture, which the page holds itself."""
        self.assert_has_content()
        png = stored_picture(*self.cell(), self.options.get("number", 1))
        words = escape(" ".join(self.content), quote=True)
        return f'<img src="data:image/png;base64,{png}" alt="{words}">'


class StoredText(Stored):
    """Lines that a cell has stored: those that match `lines`, each up to what matches `cut`."""

    option_spec: ClassVar = {"lines": directives.unchanged, "cut": directives.unchanged}

    def html(self) -> str:
        """Return the lines, in letters as large as the longest line allows."""
        kept = stored_text(*self.cell(), **self.options)
        room = (WIDTH - 60) / max(map(len, kept)) / LETTER_WIDTH
        size = min(LARGEST_TEXT, room)
        text = escape("\n".join(kept))
        return f'<pre style="font-size: {size:.1f}px"><code>{text}</code></pre>'


def open_notes(self: Any, _: nodes.Node) -> None:
    """Begin a speaker's notes, whose lists and bold words sphinx-revealjs would drop."""
    self.body.append('<aside class="notes">')


def close_notes(self: Any, _: nodes.Node) -> None:
    """End a speaker's notes."""
    self.body.append("</aside>")


def setup(app: Sphinx) -> None:
    """Add the directives, the notes and the formulas, which reveal.js's plugin typesets."""
    app.add_directive("stored-picture", StoredPicture)
    app.add_directive("stored-text", StoredText)
    app.add_node(revealjs_notes, override=True, revealjs=(open_notes, close_notes))
    app.add_html_math_renderer(
        "reveal",
        inline_renderers=(html_visit_math, None),
        block_renderers=(html_visit_displaymath, None),
    )
