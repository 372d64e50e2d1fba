"""The record of the simulator's validation is what the simulator says today."""

import pytest
from validate_simulator import fit_rows, predict, read_rows

from hvdcourse.paths import NOTEBOOKS

RECORD = NOTEBOOKS / "recorded/simulator_validation.jsonl"


def test_the_record_holds_the_predictions_of_the_simulator_as_it_is():
    head, *rows = read_rows(RECORD)
    fit = fit_rows(rows)
    assert (fit.link.latency, fit.link.bandwidth, fit.constant) == pytest.approx(
        (head["latency"], head["bandwidth"], head["constant"])
    )
    recorded = [row["predicted"] for row in rows]
    assert [predict(row, fit) for row in rows] == pytest.approx(recorded)


def test_where_the_link_sets_the_time_all_predictions_are_within_a_tenth():
    _, *rows = read_rows(RECORD)
    slow = [row for row in rows if row["rate"] == "100mbit" and row["bytes"] >= 2**20]
    assert {row["ranks"] for row in slow} == {2, 4, 8}
    assert all(abs(row["predicted"] / row["median"] - 1) < 0.1 for row in slow)
