"""Verdicts of checks, and how they look as a table, as JSON and as JUnit XML."""

import re
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from junitparser import Failure, JUnitXml, TestCase, TestSuite
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hvdcourse.checks.display import MET, UNMET, Displayed
from hvdcourse.checks.evidence import named_ranks
from hvdcourse.checks.hints import LEVELS, Hints, hints_for, question_about

# What ranks print may hold characters, such as those that move a cursor, that XML cannot.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


_OF_RANK = re.compile("rank ([0-9]+): (.*)", re.DOTALL)
# What Python puts below a line of a traceback; where the line is broken, it points elsewhere.
_MARKERS = re.compile(r"\s*[~^]+\s*")


def by_saying(lines: list[str]) -> list[str]:
    """Return lines with one for all the ranks of which the same is said."""
    ranks: dict[str, list[int]] = {}
    for of_rank in filter(None, map(_OF_RANK.fullmatch, lines)):
        ranks.setdefault(of_rank[2], []).append(int(of_rank[1]))
    grouped = []
    for line in lines:
        match = _OF_RANK.fullmatch(line)
        if match is None:
            grouped.append(line)
        elif who := ranks.pop(match[2], []):
            # "Each": what follows was said of one rank, as in "has only its own gradients".
            each = "each of " * (len(who) > 1)
            grouped.append(f"{each}{named_ranks(who)}: {match[2]}")
    return grouped


def told_of(expected: str, seen: list[str]) -> str:
    """Return what a learner reads of what is not met."""
    lines = [line for line in by_saying(seen) if not _MARKERS.fullmatch(line)]
    return "\n".join([*lines, f"expected: {expected}"])


def folded(step: int, hint: str, *more: str) -> str:
    """Return hints as HTML, each of which unfolds within the one before."""
    number = len(LEVELS) - len(more)
    element = "p" if more else "pre"
    return (
        f"<details><summary>Step {step}, hint {number} of {len(LEVELS)}: {LEVELS[number - 1]}"
        f"</summary><{element}>{escape(hint)}</{element}>"
        f"{folded(step, *more) if more else ''}</details>"
    )


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
    run_failed: bool = False

    @property
    def told(self) -> str:
        """What a learner reads of a step that is not met."""
        return "" if self.passed else told_of(self.expected, self.seen)


@dataclass(frozen=True, repr=False)
class ExerciseVerdict(Displayed):
    """The verdicts on an exercise. ``failure`` tells of a run that did not end well.

    ``hint_level`` is how many of the three hints are shown for each step that is not met.
    """

    exercise: str
    script: str
    steps: list[StepVerdict]
    failure: str | None
    seconds: float
    hint_level: int = 0
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
        """One line: how many steps are met, and whether the script has to run first."""
        met = sum(step.passed for step in self.steps)
        line = f"{self.exercise}: {met} of {len(self.steps)} steps met"
        if self.not_remembered:
            line = f"{line} ({self.not_remembered})"
        if self.failure:
            return f"{line}; first make the script run to its end"
        return line

    @property
    def offered_hint(self) -> str:
        """A line with the command that gives a hint, where there is one and none is shown."""
        step = self.first_unmet
        if self.hint_level or not step or not (self.hinted or self.question_about_failure):
            return ""
        return f"For a hint: hvdcourse hint {self.exercise} {step.number}"

    @property
    def hinted(self) -> list[tuple[StepVerdict, Hints]]:
        """The steps that are not met, with their hints.

        A failed run says nothing about which step is wrong, unless it kept a single one from being
        judged.
        """
        failed = [step for step in self.steps if step.run_failed]
        return [
            (step, hints_for(self.exercise, step.number, step.told))
            for step in self.steps
            if not step.passed and (not step.run_failed or failed == [step])
        ]

    @property
    def question_about_failure(self) -> str | None:
        """What to ask about a run that kept all that is not met from being judged."""
        return None if self.hinted or not self.failure else question_about(self.failure)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data for ``--json``; hints only where they were asked for."""
        data = asdict(self) | {"passed": self.passed}
        if self.hint_level:
            shown = {step.number: hints[: self.hint_level] for step, hints in self.hinted}
            for step in data["steps"]:
                step["hints"] = list(shown.get(step["number"], ()))
        del data["hint_level"], data["not_remembered"]
        return data

    def rows(self) -> list[list[StepVerdict]]:
        """Return the steps of each row: those that one run keeps from being judged share one."""
        rows: list[list[StepVerdict]] = []
        for step in self.steps:
            alike = (row for row in rows if row[0].run_failed and row[0].told == step.told)
            if step.run_failed and (row := next(alike, None)):
                row.append(step)
            else:
                rows.append([step])
        return rows

    def __rich__(self) -> RenderableType:
        """Return the verdict as a table, the hints that were asked for, and the summary."""
        table = Table("step", "", "what must be true", show_lines=True)
        for step, *others in self.rows():
            numbers = "\n".join(str(each.number) for each in (step, *others))
            title = "Why these steps were not judged" if others else step.title
            mark = Text("met", MET) if step.passed else Text("not yet", UNMET)
            mark = Text("not judged") if step.run_failed else mark
            paragraphs = [Text(title, "bold")] + ([Text(step.told)] if step.told else [])
            table.add_row(numbers, mark, Group(*paragraphs))
        hints = [
            Text(f"Hints for step {step.number}\n{hints.in_words(self.hint_level)}\n")
            for step, hints in self.hinted
            if self.hint_level
        ]
        if self.hint_level and self.question_about_failure:
            hints = [Text(f"A hint: {self.question_about_failure}\n")]
        offer = [Text(self.offered_hint)] if self.offered_hint else []
        return Group(table, *hints, Text(f"{self.summary} ({self.seconds:.1f} s)"), *offer)

    def in_notebook(self) -> tuple[RenderableType, str]:
        """Return the table, and folded hints: of the first step without, or of all if asked for."""
        hinted = self.hinted if self.hint_level else self.hinted[:1]
        folds = "".join(folded(step.number, *hints) for step, hints in hinted)
        if question := self.question_about_failure:
            folds = (
                f"<details><summary>A hint: a question</summary><p>{escape(question)}</p></details>"
            )
        return replace(self, hint_level=0), folds

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
