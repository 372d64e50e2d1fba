"""Finds, by a mark in their environment, the processes that a test has started."""

import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

MARK = "HVDCOURSE_TEST_MARK"
# Beside another test, forked ranks have taken more than 20 seconds to start.
START_SECONDS = 60
HVDCOURSE = str(Path(sys.prefix) / "bin" / "hvdcourse")


def wait_for(condition: Callable[[], object], seconds: float = 20) -> bool:
    """Poll until the condition holds; return whether it came to hold in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())


def servers() -> set[int]:
    """Return the helpers of multiprocessing that this process keeps until its end."""
    names = ("multiprocessing.forkserver", "multiprocessing.resource_tracker")
    kept = set()
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if any(name in " ".join(child.cmdline()) for name in names):
                kept.add(child.pid)
    return kept


def started_processes() -> list[psutil.Process]:
    """Return what this test has started and is still alive, known by a variable it inherited.

    The fork server of this process outlives the test. What it forks carries the mark of the test
    that started it.
    """
    found = []
    kept = servers()
    forked = {child for pid in kept for child in psutil.Process(pid).children(recursive=True)}
    for process in psutil.process_iter():
        try:
            is_mine = process in forked or process.environ().get(MARK) == os.environ[MARK]
            if is_mine and process.pid not in kept and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def started(module: str) -> list[psutil.Process]:
    """Return this test's processes with this text on their command line."""
    found = []
    for process in started_processes():
        try:
            if module in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


@contextmanager
def watched() -> Iterator[Path]:
    """Fail where the block leaves a process or a folder of ours behind; yields its TMPDIR.

    Open MPI puts sockets there, whose paths must be short, so it is not in pytest's folder.
    """
    with pytest.MonkeyPatch.context() as patch:
        temporary = Path(tempfile.mkdtemp(prefix="t"))
        patch.setenv(MARK, uuid.uuid4().hex)
        patch.setenv("TMPDIR", str(temporary))
        patch.setattr(tempfile, "tempdir", str(temporary))
        temporary.chmod(0o777)
        try:
            yield temporary
            wait_for(lambda: not started_processes(), 8)
            left = [" ".join(process.cmdline()) for process in started_processes()]
            names = ("hvdcourse-*", "__autograph_generated_file*")
            folders = [path.name for name in names for path in temporary.glob(name)]
        finally:
            for process in started_processes():
                process.kill()
            shutil.rmtree(temporary, ignore_errors=True)
    assert not left, "left running"
    assert not folders, "left in the temporary folder"
