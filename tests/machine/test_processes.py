"""Ending processes, on real ones: polite, stubborn, and quick to start others."""

import signal
import subprocess
import uuid

import psutil
import pytest

from hvdcourse.machine.processes import end_all

VARIABLE = "HVDCOURSE_TEST_TREE"


class Tree:
    """Processes that are known by a variable that they inherit."""

    def __init__(self):
        self.mark = uuid.uuid4().hex

    def start(self, script: str) -> subprocess.Popen:
        """Start a shell script and wait until it says that it is ready."""
        process = subprocess.Popen(
            ["sh", "-c", script], env={VARIABLE: self.mark}, stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == b"ready\n"
        process.stdout.close()
        return process

    def listed(self) -> list[psutil.Process]:
        """Return the processes of the tree, wherever they hang."""
        processes = psutil.process_iter(["environ"])
        return [
            each for each in processes if (each.info["environ"] or {}).get(VARIABLE) == self.mark
        ]


@pytest.fixture
def tree():
    tree = Tree()
    yield tree
    for process in tree.listed():
        process.kill()


def test_a_polite_process_ends_by_being_asked_and_its_parent_gets_its_status(tree):
    process = tree.start("trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done")
    assert end_all(tree.listed) == []
    assert process.wait() == 7


def test_a_process_that_ignores_being_asked_is_killed(tree):
    process = tree.start("trap '' TERM; echo ready; sleep 876; sleep 876")
    assert end_all(tree.listed, grace=0.2) == []
    assert process.wait() == -signal.SIGKILL
    assert not tree.listed()


def test_without_grace_nobody_is_asked(tree):
    process = tree.start("trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done")
    assert end_all(tree.listed, grace=0) == []
    assert process.wait() == -signal.SIGKILL


def test_what_a_process_starts_while_it_is_ended_ends_too(tree):
    last_words = "trap 'setsid sh -c \"trap : TERM; sleep 876; sleep 876\" & exit 0' TERM"
    process = tree.start(f"{last_words}; echo ready; while :; do sleep 0.05; done")
    assert end_all(tree.listed, grace=0.5) == []
    assert process.wait() in (0, -signal.SIGKILL)  # It may not get a core within the half second.
    assert not tree.listed()


def test_what_ends_by_itself_is_waited_for(tree):
    process = tree.start("trap 'exit 7' TERM; echo ready; for i in 1 2 3 4 5; do sleep 0.1; done")
    assert end_all(tree.listed, patience=20) == []
    assert process.wait() == 0


def test_what_does_not_end_is_returned(tree, monkeypatch):
    process = psutil.Process(tree.start("echo ready; sleep 876").pid)
    monkeypatch.setattr("hvdcourse.machine.processes.KILL_SECONDS", 0.2)
    monkeypatch.setattr(psutil.Process, "send_signal", lambda *_: None)
    assert process in end_all(tree.listed, grace=0)


def test_where_there_is_nothing_nothing_happens():
    assert end_all(list) == []
