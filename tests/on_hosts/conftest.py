"""What the tests on several hosts share. Each makes its own hosts, which takes about a second."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from machine import snapshot
from watching import HVDCOURSE, wait_for

from hvdcourse.cluster import cluster


@pytest.fixture
def nothing_changed(nothing_left: Path) -> Iterator[None]:
    """Fail the test if the machine is not as it was before it."""
    before = snapshot()
    assert not before["our folder"], "hosts are up: run `hvdcourse cluster down` first"
    try:
        yield
        # Namespaces' last processes are taken away by the kernel, in its own time.
        wait_for(lambda: snapshot() == before, 5)
        assert snapshot() == before
    finally:
        cluster.down()


@pytest.fixture
def make_hosts(nothing_changed: None) -> Iterator[Callable[..., list[cluster.Host]]]:
    """Make hosts for a test; they are removed after it."""
    yield cluster.up
    cluster.down()


@pytest.fixture
def command(nothing_changed: None) -> Iterator[Callable[..., subprocess.CompletedProcess]]:
    """Run ``hvdcourse cluster …``: ``command("up", "--hosts", "3")``; hosts go after the test."""

    def run(*arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*prefix, HVDCOURSE, "cluster", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )

    yield run
    cluster.down()


@pytest.fixture
def run_script(tmp_path: Path) -> Callable[[str], str]:
    """Write a script that all hosts can read, and return its path."""

    def write(text: str) -> str:
        path = tmp_path / "script.py"
        path.write_text(dedent(text))
        return str(path)

    return write
