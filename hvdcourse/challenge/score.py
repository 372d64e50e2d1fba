"""The score of a challenge, and how it looks as a table and as JSON."""

from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hvdcourse.challenge.report import Report
from hvdcourse.checks.display import MET, PARTLY, UNMET, Displayed


@dataclass(frozen=True)
class PartScore:
    """One part: its points, how many there are for it, and what was measured or missed."""

    name: str
    title: str
    points: float
    most: int
    words: str


@dataclass(frozen=True, repr=False)
class Score(Displayed):
    """A program's score. ``seconds`` is what the judgment took.

    ``report`` says how it classified the test images; None without a run on all images.
    """

    script: str
    parts: list[PartScore]
    seconds: float
    report: Report | None = None

    @property
    def points(self) -> float:
        """The sum of all parts."""
        return round(sum(part.points for part in self.parts), 1)

    @property
    def most(self) -> int:
        """How many points there are."""
        return sum(part.most for part in self.parts)

    @property
    def passed(self) -> bool:
        """Whether no part is without points."""
        return all(part.points for part in self.parts)

    @property
    def summary(self) -> str:
        """One line: the points, and how long it took."""
        return f"{self.points:g} of {self.most} points ({self.seconds:.0f} s)"

    def to_dict(self) -> dict[str, Any]:
        """Return the score as plain data for ``--json``."""
        return {**asdict(self), "points": self.points, "most": self.most}

    def __rich__(self) -> RenderableType:
        """Return the score as a table, and the sum."""
        table = Table("part", "points", "what it is for, and what was seen", show_lines=True)
        told: dict[str, str] = {}  # What fails several parts, such as a crash, is told once.
        for part in self.parts:
            before = told.setdefault(part.words, part.name)
            words = part.words if before == part.name else f"see {before}"
            style = MET if part.points == part.most else PARTLY if part.points else UNMET
            paragraphs = [Text(part.title, "bold")] + ([Text(words)] if part.words else [])
            points = Text(f"{part.points:g} of {part.most}", style)
            table.add_row(part.name, points, Group(*paragraphs))
        report = [self.report.table()] if self.report else []
        return Group(table, *report, Text(self.summary))

    def __repr__(self) -> str:
        """Return one line for each part, and the sum."""
        lines = (f"{part.name}: {part.points:g} of {part.most}" for part in self.parts)
        return "\n".join([*lines, self.summary])
