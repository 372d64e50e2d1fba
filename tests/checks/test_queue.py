"""The queue of the checks on a shared machine: order, places, and what a kill leaves behind."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import pytest
from watching import HVDCOURSE, wait_for

from hvdcourse.checks.queue import QUEUE_VARIABLE, checks_ahead, in_queue, take_ticket, turn
from hvdcourse.errors import BadInput

HOLD = """
import sys
from pathlib import Path
from hvdcourse.checks.queue import in_queue
with in_queue(Path(sys.argv[1]), 1, print):
    print("runs", flush=True)
    sys.stdin.read()
"""


def refuse_to_wait(line):
    raise AssertionError(line)


@pytest.fixture
def queue(tmp_path, monkeypatch):
    folder = tmp_path / "queue"
    folder.mkdir()
    monkeypatch.setenv(QUEUE_VARIABLE, str(folder))
    return folder


def test_without_the_variable_no_check_waits(queue, monkeypatch):
    monkeypatch.delenv(QUEUE_VARIABLE)
    with ExitStack() as many:
        for _ in range(20):
            many.enter_context(turn(refuse_to_wait))
        assert not list(queue.iterdir())


def test_as_many_run_as_there_is_room_for_and_leave_nothing(queue):
    with in_queue(queue, 2, refuse_to_wait), in_queue(queue, 2, refuse_to_wait):
        assert len(list(queue.iterdir())) == 2
    assert not list(queue.iterdir())


def test_a_check_waits_says_its_place_and_moves_up(queue):
    said, began, may_end = [], Event(), Event()

    def check():
        with in_queue(queue, 1, said.append):
            began.set()
            may_end.wait()

    with ThreadPoolExecutor() as pool:
        first, second = ExitStack(), ExitStack()
        first.enter_context(in_queue(queue, 1, refuse_to_wait))
        second.enter_context(in_queue(queue, 2, refuse_to_wait))
        pool.submit(check)
        try:
            assert wait_for(lambda: said)
            assert not began.is_set()
            first.close()
            assert wait_for(lambda: len(said) == 2)
            assert not began.is_set()
            second.close()
            assert began.wait(20)
        finally:
            first.close()
            second.close()
            may_end.set()
    assert said == [
        "waiting: 2 checks are ahead of yours; this machine runs 1 at a time",
        "waiting: 1 check is ahead of yours; this machine runs 1 at a time",
    ]
    assert not list(queue.iterdir())


def test_nobody_waits_for_a_check_that_was_killed(queue):
    command = [sys.executable, "-c", HOLD, queue]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as held:
        try:
            assert held.stdout.readline() == "runs\n"
            ticket, lock = take_ticket(queue)
            assert checks_ahead(ticket) == 1
        finally:
            held.kill()
    assert checks_ahead(ticket) == 0
    with in_queue(queue, 2, refuse_to_wait):
        assert ticket in queue.iterdir()
        assert len(list(queue.iterdir())) == 2, "the ticket of the killed check is still there"
    os.close(lock)


@pytest.mark.parametrize("waits", [False, True])
def test_ctrl_z_stops_no_check_that_runs_or_waits(queue, waits):
    command = [sys.executable, "-u", "-c", HOLD, queue]
    pipe = subprocess.PIPE
    with ExitStack() as ahead:
        if waits:
            ahead.callback(os.close, take_ticket(queue)[1])
        # Linux stops nobody in the group of a process that has lost its parent.
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, preexec_fn=os.setpgrp
        ) as held:
            try:
                assert held.stdout.readline().startswith("waiting" if waits else "runs")
                held.send_signal(signal.SIGTSTP)
                ahead.close()
                held.communicate(timeout=20)
            finally:
                held.kill()
    assert held.returncode == 0


def test_an_error_in_a_check_frees_its_place(queue):
    with pytest.raises(ZeroDivisionError), turn(refuse_to_wait):
        raise ZeroDivisionError
    assert not list(queue.iterdir())


def test_the_tickets_of_others_can_be_looked_at_and_files_beside_them_do_no_harm(queue):
    (queue / "README").write_text("the queue of a class")
    (queue / "7").write_text("a stray file that nobody holds")
    umask = os.umask(0o077)
    try:
        ticket, lock = take_ticket(queue)
    finally:
        os.umask(umask)
    assert checks_ahead(ticket) == 0
    assert ticket.stat().st_mode & 0o777 == 0o644
    os.close(lock)


@pytest.mark.parametrize("place", ["gone", "file"])
def test_a_variable_that_names_no_folder_is_refused_before_anything_runs(tmp_path, place):
    (tmp_path / "file").write_text("no folder")
    done = subprocess.run(
        [HVDCOURSE, "check", "ring_allreduce"],
        env={**os.environ, QUEUE_VARIABLE: str(tmp_path / place)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: HVDCOURSE_QUEUE must name a folder of this machine")
    assert str(tmp_path / place) in line


def test_a_folder_that_cannot_be_written_to_is_refused():
    said = pytest.raises(BadInput, match="everybody can write to; got '/sys'")
    with said, in_queue(Path("/sys"), 1, refuse_to_wait):
        pass
