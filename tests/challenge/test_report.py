"""The report of a program: precision, recall, and what a painter was taken for."""

import io

import numpy as np
import pytest
from rich.console import Console

from hvdcourse.challenge.evidence import Evidence, Gallery
from hvdcourse.challenge.measures import counts_by_painter
from hvdcourse.challenge.report import Report, report_of
from hvdcourse.checks.evidence import ObservedRun
from hvdcourse.launch.result import RankResult, RunResult
from hvdcourse.rank.thumbnails import all_views, thumbnails

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 3))
GALLERY = Gallery(("ann", "ben"), 6, np.empty(0), all_views(PIXELS), np.array([0, 0, 0, 0, 1, 1]))


def evidence(answers: list[int]) -> Evidence:
    """Return evidence of a large run on two ranks; each has evaluated every other image."""
    ranks = []
    for rank in range(2):
        images = thumbnails(PIXELS[rank::2]).tolist()
        note = {"note": "answers", "value": {"images": images, "classes": answers[rank::2]}}
        metrics = [{"done": True, "epoch": 1, "loss": 2.0, "val_accuracy": 0.5, "seconds": 1.0}]
        ranks.append(RankResult(rank, 0, evidence=[note], metrics=metrics))
    result = RunResult("", 2, "ended", 1, 1, ranks, [])
    return Evidence({"large": ObservedRun(result, {"epochs": 1})}, {"large": GALLERY})


def test_the_answers_of_all_ranks_are_one_confusion_matrix():
    report = report_of(evidence([0, 0, 0, 1, 1, 0]))
    assert report.confusion == [[3, 1], [1, 1]]
    assert report.precision.tolist() == [3 / 4, 1 / 2]
    assert report.recall.tolist() == [3 / 4, 1 / 2]
    assert report.history == {"loss": [2.0], "val_accuracy": [0.5]}


def test_counts_are_of_what_is_right_exists_and_was_named():
    of_run = evidence([0, 0, 0, 1, 1, 1])
    counts = counts_by_painter(of_run.run("large"), GALLERY)
    assert counts == {"ann": [3, 4, 3], "ben": [2, 2, 3]}


def test_a_painter_who_is_never_named_has_no_precision_and_the_table_says_who_was():
    report = Report(("ann", "ben"), [[4, 0], [2, 0]], {})
    assert report.precision == pytest.approx([4 / 6, 0])
    console = Console(file=io.StringIO(), record=True, width=100)
    console.print(report.table())
    *_, ben, _ = console.export_text().splitlines()
    assert [cell.strip() for cell in ben.split("│")[2:-1]] == ["0.00", "0.00", "2", "ann (2)"]


def test_without_a_run_or_with_classes_that_are_no_painters_there_is_no_report():
    assert report_of(Evidence()) is None
    assert report_of(evidence([0, 0, 0, 0, 1, 7])) is None
