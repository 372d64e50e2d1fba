"""The file of records: what is read from it, what is skipped by name, and what is never lost."""

import json
import re
import subprocess
import sys
from dataclasses import asdict

import pytest
from course import NOTEBOOKS
from study_runs import record

from hvdcourse.study.condition import Condition
from hvdcourse.study.grid import read_grid
from hvdcourse.study.records import FORMAT, append_record, digest, key_of, read_records

RECORDED = NOTEBOOKS / "recorded"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.jsonl"


def test_what_was_appended_is_read_again(path):
    for seed in (0, 1):
        append_record(path, record(seed))
    found = read_records(path)
    assert found.runs == [{"format": FORMAT, **record(seed)} for seed in (0, 1)]
    assert found.skipped == []
    assert len(path.read_text().splitlines()) == 2


def test_no_file_holds_no_records(path):
    assert read_records(path).runs == []


def test_a_number_that_json_does_not_know_is_refused_and_nothing_is_written(path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        append_record(path, {**record(), "steps": float("nan")})
    assert not path.exists()


def test_a_half_written_line_is_named_and_the_next_record_has_its_own(path):
    append_record(path, record(0))
    half = path.read_text()[:100]
    with path.open("a") as file:
        file.write(half)
    append_record(path, record(1))
    found = read_records(path)
    assert [run["seed"] for run in found.runs] == [0, 1]
    (skipped,) = found.skipped
    assert skipped.startswith("records.jsonl, line 2: is not whole JSON")
    assert path.read_text().splitlines()[1] == half


def test_a_whole_record_whose_line_end_is_missing_counts(path):
    append_record(path, record(0))
    path.write_text(path.read_text().rstrip("\n"))
    append_record(path, record(1))
    assert [run["seed"] for run in read_records(path).runs] == [0, 1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"accuracy,0.9", "is not whole JSON"),
        (b"\xff\xfe\x00", "is not whole JSON"),
        (b"[" * 100_000, "is not whole JSON"),
        (b"[1, 2]", f"is not a record of the format '{FORMAT}'"),
        (b'{"accuracy": 0.9}', f"is not a record of the format '{FORMAT}'"),
    ],
)
def test_a_foreign_line_is_named_and_skipped(line, said, path):
    path.write_bytes(line + b"\n\n")
    append_record(path, record())
    found = read_records(path)
    assert [run["seed"] for run in found.runs] == [0]
    (skipped,) = found.skipped
    assert skipped.startswith(f"records.jsonl, line 1: {said}")
    assert skipped.endswith("skipped")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"epochs": "none"}, "has no 'epochs' of type list"),
        ({"epochs": []}, "has no measurements of its epochs"),
        ({"epochs": [1]}, "has no measurements of its epochs"),
        ({"data": {}}, "does not say the fingerprint of its data"),
        ({"steps": None}, "has no 'steps' of type int"),
    ],
)
def test_a_record_that_lacks_something_is_named_and_skipped(changed, said, path):
    append_record(path, {**record(), **changed})
    found = read_records(path)
    assert found.runs == []
    assert said in found.skipped[0]


def test_of_several_records_of_one_run_the_first_counts(path):
    append_record(path, record(accuracy=0.5))
    append_record(path, record(accuracy=0.9, condition="renamed"))
    (run,) = read_records(path).runs
    assert run["epochs"][-1]["accuracy"] == 0.5


def test_runs_are_the_same_by_settings_seed_and_data_and_not_by_name():
    one = record(learning_rate=1)
    assert key_of(one) == key_of(record(condition="renamed", learning_rate=1.0))
    older = {name: value for name, value in one["settings"].items() if name != "keep_weights"}
    assert key_of(one) == key_of({**one, "settings": older})
    others = [
        record(1, learning_rate=1),
        record(learning_rate=2),
        {**one, "data": {"fingerprint": "1"}},
    ]
    assert len({key_of(other) for other in [one, *others]}) == 4


def test_a_digest_differs_for_other_values_shapes_and_types():
    import numpy as np

    arrays = [np.arange(4), np.arange(4).reshape(2, 2), np.arange(4.0), np.arange(1, 5)]
    assert len({digest([array]) for array in arrays}) == 4
    assert digest([np.arange(8)[::2]]) == digest([np.array([0, 2, 4, 6])])


def test_processes_that_append_at_once_lose_nothing(path):
    """Lines far longer than what a system writes at once."""
    code = """
import json, sys
from hvdcourse.study.records import append_record
record = json.load(sys.stdin)
for number in range(20):
    append_record(sys.argv[1], {**record, "seed": int(sys.argv[2]) + number})
"""
    whole = json.dumps({**record(), "learning_rates": [0.1] * 20_000})
    writers = [
        subprocess.Popen([sys.executable, "-c", code, path, str(first)], stdin=subprocess.PIPE)
        for first in (0, 100, 200)
    ]
    for writer in writers:
        writer.stdin.write(whole.encode())
        writer.stdin.close()
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    found = read_records(path)
    assert found.skipped == []
    expected = {first + number for first in (0, 100, 200) for number in range(20)}
    assert {run["seed"] for run in found.runs} == expected


@pytest.mark.parametrize("grid", sorted(RECORDED.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_the_lessons_show_as_recorded_are_the_runs_of_the_grid_beside_it(grid):
    conditions, seeds = read_grid(grid)
    found = read_records(grid.with_suffix(".jsonl"))
    assert found.skipped == []
    assert sorted((run["condition"], run["seed"]) for run in found.runs) == sorted(
        (name, seed) for name in conditions for seed in seeds
    )
    # A setting that is newer than a record has the default that the record was made with.
    defaults = asdict(Condition())
    for run in found.runs:
        assert {**defaults, **run["settings"]} == asdict(conditions[run["condition"]])
        assert not re.search(r"[\s'\"]/\w", json.dumps(run)), "a path of one machine"
