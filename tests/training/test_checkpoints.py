"""A checkpoint is whole or it is not there, whatever happens while it is written."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hvdcourse.training.checkpoints import load_newest, save, saved_in

pytestmark = pytest.mark.timeout(60)


def arrays(number: int) -> dict[str, np.ndarray]:
    """Return weights that tell which checkpoint they are from."""
    return {"dense/kernel": np.full((50, 20), number, np.float32), "step": np.array(number)}


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_was_saved_is_loaded(tmp_path):
    save(tmp_path / "new" / "folder", 7, arrays(7))
    checkpoint = load_newest(tmp_path / "new" / "folder")
    assert checkpoint.number == 7
    assert checkpoint.arrays.keys() == arrays(7).keys()
    np.testing.assert_array_equal(checkpoint.arrays["dense/kernel"], arrays(7)["dense/kernel"])
    assert checkpoint.arrays["dense/kernel"].dtype == np.float32


def test_the_last_ones_stay_and_the_newest_is_loaded(tmp_path):
    for number in (1, 2, 9, 10, 1000000):
        save(tmp_path, number, arrays(number), keep=3)
    assert [path.name for path in saved_in(tmp_path)] == [
        "checkpoint-1000000.npz",
        "checkpoint-000010.npz",
        "checkpoint-000009.npz",
    ]
    assert load_newest(tmp_path).number == 1000000


def test_a_new_training_in_the_folder_of_a_longer_one_goes_on_with_its_own(tmp_path):
    for number in (8, 9, 10):
        save(tmp_path, number, arrays(number), keep=3)
    save(tmp_path, 1, arrays(1), keep=3)
    assert names(tmp_path) == ["checkpoint-000001.npz"]
    save(tmp_path, 2, arrays(2), keep=3)
    assert load_newest(tmp_path).number == 2
    assert names(tmp_path) == ["checkpoint-000001.npz", "checkpoint-000002.npz"]


def test_without_checkpoints_there_is_nothing_to_load(tmp_path):
    (tmp_path / "checkpoint-mine.npz").touch()
    assert load_newest(tmp_path) is None
    assert load_newest(tmp_path / "not there") is None


@pytest.mark.parametrize("part", range(20))
def test_a_truncated_one_is_named_and_skipped(part, tmp_path, capsys):
    save(tmp_path, 1, arrays(1))
    newest = save(tmp_path, 2, arrays(2))
    content = newest.read_bytes()
    newest.write_bytes(content[: len(content) * part // 20])
    assert load_newest(tmp_path).number == 1
    assert f"{newest} is damaged and was skipped" in capsys.readouterr().err
    assert newest.exists()


def test_a_changed_byte_is_noticed(tmp_path, capsys):
    save(tmp_path, 1, arrays(1))
    newest = save(tmp_path, 2, arrays(2))
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    assert load_newest(tmp_path).number == 1
    assert "damaged" in capsys.readouterr().err


@pytest.mark.parametrize("mask", [0x01, 0xFF])
def test_a_changed_byte_anywhere_is_noticed_or_changes_nothing(mask, tmp_path, capsys):
    whole = save(tmp_path, 1, {"step": np.array(7)}).read_bytes()
    (newest,) = saved_in(tmp_path)
    noticed = 0
    for place in range(len(whole)):
        newest.write_bytes(whole[:place] + bytes([whole[place] ^ mask]) + whole[place + 1 :])
        checkpoint = load_newest(tmp_path)
        noticed += checkpoint is None
        assert checkpoint is None or checkpoint.arrays == {"step": 7}, place
    assert noticed > len(whole) / 2
    assert capsys.readouterr().err.count("is damaged and was skipped") == noticed


@pytest.mark.filterwarnings("error")
def test_a_disk_that_fills_up_is_told_and_keeps_the_last_one_that_had_room(small_disk):
    folder = small_disk(1024)
    save(folder, 1, {"weights": np.zeros(100_000)})
    with pytest.raises(OSError, match="No space left on device"):
        save(folder, 2, {"weights": np.ones(100_000)})
    assert names(folder) == ["checkpoint-000001.npz"]
    assert load_newest(folder).number == 1


KILLED = """
import itertools, sys
import numpy as np
from hvdcourse.training.checkpoints import save
print("ready", flush=True)
for number in itertools.count(1):
    save(sys.argv[1], number, {"weights": np.full(1_000_000, number)}, keep=2)
"""


@pytest.mark.parametrize("milliseconds", range(20, 200, 30))
def test_a_kill_at_any_moment_leaves_whole_ones(milliseconds, tmp_path, capsys):
    save(tmp_path, 0, arrays(0))
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    time.sleep(milliseconds / 1000)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    checkpoint = load_newest(tmp_path)
    if checkpoint.number:
        assert (checkpoint.arrays["weights"] == checkpoint.number).all()
    assert capsys.readouterr().err == ""
    save(tmp_path, 10**6, arrays(0), keep=1)
    assert names(tmp_path) == ["checkpoint-1000000.npz"]


@pytest.mark.parametrize(("number", "keep"), [(-1, 3), (1, 0)])
def test_what_makes_no_sense_is_refused(number, keep, tmp_path):
    with pytest.raises(ValueError, match=f"got {number} and {keep}"):
        save(tmp_path, number, arrays(1), keep=keep)
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file/below"):
        save(tmp_path / "file" / "below", 1, arrays(1))
