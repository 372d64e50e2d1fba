"""Three hints for every step: a question, where to look, and the shape of the code.

They are texts, in ``exercises/hints/NAME.yaml``, by number of the step. The question may depend on
what the check saw: the first of the ``if_seen`` words that the verdict has brings its own question.
Words that several exercises' verdicts have stand in ``exercises/hints/if_seen.yaml``.
"""

import functools
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

FOLDER = Path(__file__).with_name("exercises") / "hints"
SHARED = "if_seen"


class Hints(NamedTuple):
    """The hints for one step, from the one that gives least away to the one that gives most."""

    question: str
    place: str
    shape: str

    def in_words(self, level: int) -> str:
        """Return the first ``level`` hints as text, each under its name."""
        texts = (f" {self.question}", f" {self.place}", "\n" + indent(self.shape, "    "))
        named = zip(LEVELS, texts, strict=True)
        return "\n".join([f"{name}:{text}" for name, text in named][:level])


LEVELS = ("A question", "Where to look", "The shape of the code")


@functools.cache
def read_hints(name: str) -> dict[Any, Any]:
    """Return what one of the files holds."""
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text())


def question_about(seen: str) -> str | None:
    """Return the question that all exercises share about what a check saw, if there is one."""
    shared = read_hints(SHARED).items()
    return next((asked.strip() for words, asked in shared if words in seen), None)


def hints_for(exercise: str, step: int, seen: str = "") -> Hints:
    """Return the hints for one step, with a question about what the check saw, if there is one."""
    texts = read_hints(exercise)[step]
    own = texts.get("if_seen", {}).items()
    question = next((asked for words, asked in own if words in seen), question_about(seen))
    texts = (question or texts["question"], texts["place"], texts["shape"])
    return Hints(*(text.strip() for text in texts))
