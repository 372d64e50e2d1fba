"""Verdicts of checks, and how they look as a table, as JSON and as JUnit XML."""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from junitparser import Failure, JUnitXml, TestCase, TestSuite
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hvdcourse.checks.display import MET, UNMET, Displayed

# What ranks print may hold characters, such as those that move a cursor, that XML cannot.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


_OF_RANK = re.compile("rank ([0-9]+): (.*)", re.DOTALL)


def by_saying(lines: list[str]) -> list[str]:
    """Return lines with one for all the ranks of which the same is said."""
    ranks: dict[str, list[str]] = {}
    for of_rank in filter(None, map(_OF_RANK.fullmatch, lines)):
        ranks.setdefault(of_rank[2], []).append(of_rank[1])
    told = []
    for line in lines:
        match = _OF_RANK.fullmatch(line)
        if match is None:
            told.append(line)
        elif who := ranks.pop(match[2], []):
            *others, last = who
            ranks_in_words = f"ranks {', '.join(others)} and {last}" if others else f"rank {last}"
            told.append(f"{ranks_in_words}: {match[2]}")
    return told


class NotRemembered(RuntimeError):
    """The verdict stands, but could not be written to the learner's progress."""


@dataclass(frozen=True)
class StepVerdict:
    """The verdict on one step: ``expected`` and ``seen`` are empty where it passed.

    With ``run_failed``, a run that the step needs failed, or computed no numbers, so that the step
    itself was not judged.
    """

    number: int
    title: str
    passed: bool
    expected: str
    seen: list[str]
    hint: str
    run_failed: bool = False


@dataclass(frozen=True, repr=False)
class ExerciseVerdict(Displayed):
    """The verdicts on an exercise. ``failure`` tells of a run that did not end well."""

    exercise: str
    script: str
    steps: list[StepVerdict]
    failure: str | None
    seconds: float
    show_hints: bool = False
    not_remembered: str = ""

    @property
    def passed(self) -> bool:
        """Whether every step that was judged passed."""
        return all(step.passed for step in self.steps)

    @property
    def first_unmet(self) -> StepVerdict | None:
        """The first step that is not met, if any."""
        return next((step for step in self.steps if not step.passed), None)

    @property
    def summary(self) -> str:
        """One line: how many steps are met, and what to do next."""
        met = sum(step.passed for step in self.steps)
        line = f"{self.exercise}: {met} of {len(self.steps)} steps met"
        if self.not_remembered:
            line = f"{line} ({self.not_remembered})"
        if self.failure:
            return f"{line}; first make the script run to its end"
        if self.first_unmet and not self.show_hints:
            number = self.first_unmet.number
            return f"{line}; a hint: hvdcourse hint {self.exercise} {number}"
        return line

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data for ``--json``; hints only where they were asked for."""
        data = asdict(self) | {"passed": self.passed}
        for step in data["steps"]:
            if not self.show_hints:
                del step["hint"]
        del data["show_hints"], data["not_remembered"]
        return data

    def rows(self) -> list[tuple[StepVerdict, str]]:
        """Return each step with what is to be said of it; a failed run is told of once."""
        rows: list[tuple[StepVerdict, str]] = []
        failures: list[list[str]] = []
        for step in self.steps:
            if step.passed:
                text = ""
            elif step.run_failed and step.seen in failures:
                text = "not judged: see above"
            else:
                failures.append(step.seen)
                text = "\n".join([*by_saying(step.seen), f"expected: {step.expected}"])
                text += f"\nhint: {step.hint}" if self.show_hints and not step.run_failed else ""
            rows.append((step, text))
        return rows

    def __rich__(self) -> RenderableType:
        """Return the verdict as a table, and the summary."""
        table = Table("step", "", "what must be true", show_lines=True)
        for step, text in self.rows():
            mark = Text("met", MET) if step.passed else Text("not yet", UNMET)
            paragraphs = [Text(step.title, "bold")] + ([Text(text)] if text else [])
            table.add_row(str(step.number), mark, Group(*paragraphs))
        return Group(table, Text(f"{self.summary} ({self.seconds:.1f} s)"))

    def __repr__(self) -> str:
        """Return one line for each step, and the summary."""
        marks = (f"step {s.number}: {'met' if s.passed else 'not yet'}" for s in self.steps)
        return "\n".join([*marks, self.summary])

    def write_junit(self, path: Path) -> None:
        """Write the verdict as JUnit XML, one test case a step."""
        suite = TestSuite(self.exercise)
        for step in self.steps:
            case = TestCase(f"step {step.number}: {step.title}", classname=self.exercise)
            if not step.passed:
                failure = Failure(f"expected: {step.expected}")
                failure.text = _NOT_IN_XML.sub("\ufffd", "\n".join(step.seen))
                case.result = [failure]
            suite.add_testcase(case)
        suite.time = self.seconds
        document = JUnitXml()
        document.add_testsuite(suite)
        document.write(str(path), pretty=True)
