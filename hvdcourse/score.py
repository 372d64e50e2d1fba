"""The score of a challenge, and how it looks in a terminal, in a notebook and as JSON."""

import html
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from hvdcourse.verdict import UNMET_MARK


@dataclass(frozen=True)
class PartScore:
    """One part: its points, how many there are for it, and what was measured or missed."""

    name: str
    title: str
    points: float
    most: int
    words: str


@dataclass(frozen=True, repr=False)
class Score:
    """A program's score. ``seconds`` is what the judgement took."""

    script: str
    parts: list[PartScore]
    seconds: float

    @property
    def points(self) -> float:
        """The sum of all parts."""
        return round(sum(part.points for part in self.parts), 1)

    @property
    def most(self) -> int:
        """How many points there are."""
        return sum(part.most for part in self.parts)

    @property
    def missed(self) -> list[PartScore]:
        """The parts without a point."""
        return [part for part in self.parts if part.points == 0]

    @property
    def summary(self) -> str:
        """One line: the points, and how long it took."""
        return f"{self.points:g} of {self.most} points ({self.seconds:.0f} s)"

    def to_dict(self) -> dict[str, Any]:
        """Return the score as plain data for ``--json``."""
        return {**asdict(self), "points": self.points, "most": self.most}

    def print(self, console: Console) -> None:
        """Print the score as a table."""
        table = Table("part", "points", "what it is for, and what was seen", show_lines=True)
        for part in self.parts:
            colour = {0: "red", part.most: "green"}.get(part.points, "yellow")
            said = [Text(part.title, "bold")] + ([Text(part.words)] if part.words else [])
            table.add_row(part.name, Text(f"{part.points:g} of {part.most}", colour), Group(*said))
        console.print(table)
        console.print(Text(self.summary))

    def __repr__(self) -> str:
        """Return one line for each part, and the sum."""
        lines = (f"{part.name}: {part.points:g} of {part.most}" for part in self.parts)
        return "\n".join([*lines, self.summary])

    def _repr_html_(self) -> str:
        """Return the score as the small table that a notebook shows."""
        cell = "<td style='text-align:left;vertical-align:top'>"
        body = ""
        for part in self.parts:
            colour = {0: "#b42318", part.most: "#1a7f37"}.get(part.points, "#8a6100")
            said = f"<pre style='margin:0'>{html.escape(part.words)}</pre>" if part.words else ""
            body += (
                f"<tr>{cell}{part.name}</td>{cell}<b style='color:{colour}'>{part.points:g} of "
                f"{part.most}</b></td>{cell}<b>{html.escape(part.title)}</b>{said}</td></tr>"
            )
        mark = f" {UNMET_MARK}" if self.missed else ""
        return f"<table{mark}>{body}</table><p>{html.escape(self.summary)}</p>"
