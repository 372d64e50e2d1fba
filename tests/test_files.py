"""Files are written whole or not at all, and no appended line is lost or mixed."""

import resource
import subprocess
import sys

import pytest
from filelock import FileLock

from hvdcourse.files import append_line, write_whole


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_gets_all_of_its_new_content_and_leaves_no_other(tmp_path, durable):
    path = tmp_path / "notes.txt"
    for content in ("first", b"second"):
        write_whole(path, content, durable=durable)
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture
def no_file_over_1_kb():
    """Have a write fail halfway, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_where_it_cannot_be_written_the_old_content_stays(tmp_path, no_file_over_1_kb):
    path = tmp_path / "notes.txt"
    write_whole(path, "old")
    with pytest.raises(OSError, match="File too large"):
        write_whole(path, b"new" * 1000)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_lines_of_many_processes_are_all_kept(tmp_path):
    path = tmp_path / "lines.txt"
    code = (
        "import sys; from pathlib import Path; from hvdcourse.files import append_line\n"
        "for number in range(20): append_line(Path(sys.argv[1]), f'{sys.argv[2]}-{number}' * 50)"
    )
    commands = [[sys.executable, "-c", code, str(path), writer] for writer in "abcd"]
    writers = [subprocess.Popen(command) for command in commands]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    expected = {f"{writer}-{number}" * 50 for writer in "abcd" for number in range(20)}
    assert set(path.read_text().splitlines()) == expected


def test_a_line_that_was_cut_off_does_not_take_the_next_one_with_it(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("whole\ncut o")
    append_line(path, "next")
    assert path.read_text() == "whole\ncut o\nnext\n"


def test_a_file_that_somebody_keeps_locked_is_named(tmp_path):
    path = tmp_path / "lines.txt"
    with (
        FileLock(tmp_path / ".lines.txt.lock"),
        pytest.raises(OSError, match=r"\.lines\.txt\.lock"),
    ):
        append_line(path, "never", seconds=0.01)
    assert not path.exists()
