"""The records of a run: what is read of them while they are written."""

import numpy as np

from hvdcourse.rank.run_folder import RunFolder


def test_lines_are_read_once_and_only_when_they_are_whole(tmp_path):
    folder = RunFolder(tmp_path)
    metrics = folder.lines_as_they_come(0, "metrics")
    assert metrics.read() == []
    folder.append(0, "metrics", {"epoch": 1})
    folder.append(0, "metrics", {"epoch": 2})
    assert metrics.read() == [{"epoch": 1}, {"epoch": 2}]
    with (tmp_path / "metrics_0.jsonl").open("a") as file:
        file.write('{"epoch"')
        file.flush()
        assert metrics.read() == []
        file.write(": 3}\n")
    assert metrics.read() == [{"epoch": 3}]
    assert metrics.read() == []
    assert len(folder.read_lines(0, "metrics")) == 3


def test_arrays_become_lists(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append(1, "evidence", {"mean": np.float32(0.5), "each": [np.arange(2), range(1, 4, 2)]})
    assert folder.read_lines(1, "evidence") == [{"mean": 0.5, "each": [[0, 1], [1, 3]]}]


def test_numbers_of_arrays_may_be_keys(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append(0, "evidence", {"delays": {np.int64(1): np.float32(0.5)}})
    assert folder.read_lines(0, "evidence") == [{"delays": {"1": 0.5}}]
