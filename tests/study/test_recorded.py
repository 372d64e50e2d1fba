"""The recorded studies of the lessons: their records are all runs of their grid, and no others."""

from dataclasses import asdict

import pytest

from hvdcourse.paths import NOTEBOOKS
from hvdcourse.study.condition import Condition
from hvdcourse.study.grid import read_grid
from hvdcourse.study.records import read_records

GRIDS = sorted((NOTEBOOKS / "recorded").glob("*.yaml"))


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_the_records_are_those_of_the_grid(path):
    grid, seeds = read_grid(path)
    records = read_records(path.with_suffix(".jsonl"))
    assert not records.skipped
    found = {(run["condition"], run["seed"]): run["settings"] for run in records.runs}
    assert set(found) == {(name, seed) for name in grid for seed in seeds}
    for (name, _), settings in found.items():
        assert {**asdict(Condition()), **settings} == asdict(grid[name])
