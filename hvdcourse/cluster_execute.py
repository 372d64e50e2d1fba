"""Runs a command on a host, and leaves nothing of it behind on any host."""

import codecs
import os
import selectors
import shlex
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

from hvdcourse.cluster_host import MARK_VARIABLE, first_process
from hvdcourse.cluster_record import ClusterError, Host
from hvdcourse.launch import checked_limit

TICK_SECONDS = 0.1
# How long what is left of a command has to end by itself.
GRACE_SECONDS = 3.0
TIME_LIMIT_STATUS = 124


@dataclass(frozen=True)
class Completed:
    """What came of a command: its exit status, what it printed, and how long it took."""

    host: str
    command: str
    returncode: int
    output: str
    seconds: float
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Whether the command ended with exit status 0."""
        return self.returncode == 0

    def explain(self) -> str:
        """Return in one line how the command ended."""
        if self.timed_out:
            how = f"was ended at its time limit, after {self.seconds:.0f} s"
        else:
            how = f"ended with exit status {self.returncode} after {self.seconds:.1f} s"
        return f"on {self.host}, `{self.command}` {how}"


class CommandFailed(RuntimeError):
    """A command on a host failed; ``completed`` has what it printed."""

    def __init__(self, completed: Completed):
        super().__init__(completed.explain())
        self.completed = completed


def host_command(host: Host, command: Sequence[str]) -> list[str]:
    """Return the command line that runs a command on a host from outside, in this folder.

    Raises:
        ClusterError: the host has ended.
    """
    pid = first_process(host)
    if pid is None:
        raise ClusterError(
            f"{host.name} is not running; run `hvdcourse cluster down` and then `up` again"
        )
    enter = ("nsenter", f"--target={pid}", "--net", "--uts", "--mount", "--pid", "--")
    # If this process is killed, nsenter is too, and the command is told to end.
    killed, told = ("setpriv", "--pdeathsig", "KILL"), ("setpriv", "--pdeathsig", "TERM")
    return [*killed, *enter, "env", f"--chdir={os.getcwd()}", *told, *command]


def environment_of(mark: str, more: dict[str, str] | None) -> dict[str, str]:
    """Return the environment of a command on a host."""
    # On a busy machine one rank may import TensorFlow half a minute later than another. The hosts
    # have the cores of one machine together: a rank that waits over MPI lets others go first.
    patient = {"HOROVOD_GLOO_TIMEOUT_SECONDS": "300", "OMPI_MCA_mpi_yield_when_idle": "1"}
    # Open MPI's folders then go with the host.
    own = {"OMPI_MCA_orte_tmpdir_base": "/run", MARK_VARIABLE: mark}
    return {**patient, **os.environ, **(more or {}), **own}


def processes_marked(mark: str) -> list[psutil.Process]:
    """Return the processes of one command that are alive, on whatever host."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK_VARIABLE) == mark:
                found.append(process)
    return found


def end_marked(mark: str, grace: float) -> None:
    """End all processes of one command: politely, and after ``grace`` seconds surely."""
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, GRACE_SECONDS)):
        deadline = time.monotonic() + seconds
        left = processes_marked(mark)
        for process in left:
            with suppress(psutil.Error):
                process.send_signal(number)
        while left and time.monotonic() < deadline:
            time.sleep(TICK_SECONDS)
            left = processes_marked(mark)


@contextmanager
def started(
    host: Host, command: Sequence[str], environment: dict[str, str] | None, **streams: int | None
) -> Iterator[subprocess.Popen]:
    """Start a command on a host; whatever is left of it at the end of the block is ended."""
    mark = uuid.uuid4().hex
    words = host_command(host, command)
    process = subprocess.Popen(words, env=environment_of(mark, environment), **streams)
    try:
        yield process
    finally:
        with undisturbed():
            end_started(process, mark)


def end_started(process: subprocess.Popen, mark: str) -> None:
    """End a command and all that it has started."""
    if process.poll() is not None:
        # Its ranks on other hosts have a moment to see it.
        wait_for_the_last(mark)
    else:
        end_marked(mark, GRACE_SECONDS)
        # A connection that was just being made may have started one more.
        time.sleep(2 * TICK_SECONDS)
    end_marked(mark, GRACE_SECONDS)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_SECONDS)
    process.kill()
    process.wait()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no second Ctrl-C come between while the block cleans up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for_the_last(mark: str) -> None:
    """Give the processes of a command that has ended a moment to end by themselves."""
    deadline = time.monotonic() + GRACE_SECONDS
    while processes_marked(mark) and time.monotonic() < deadline:
        time.sleep(TICK_SECONDS)


def output_of(process: subprocess.Popen, deadline: float) -> Iterator[str]:
    """Yield what a process prints, as it comes, until it ends or the deadline has passed."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            if selector.select(TICK_SECONDS):
                data = os.read(process.stdout.fileno(), 65536)
                if not data:
                    return
                yield decoder.decode(data)
            elif process.poll() is not None:
                return


def execute(
    host: Host,
    command: Sequence[str],
    timeout: float = 600,
    environment: dict[str, str] | None = None,
    *,
    quiet: bool = False,
    must_succeed: bool = True,
) -> Completed:
    """Run a command on a host, as if you had logged in there, and show what it prints at once.

    It runs in the current folder and with the current environment; only ranks over Gloo wait
    five minutes for each other's start unless you say otherwise. At its end, at the time limit
    and at Ctrl-C, all that it has started on any host is ended.

    Args:
        host: where to run it.
        command: the program and its arguments.
        timeout: seconds after which it is ended.
        environment: environment variables to add.
        quiet: print nothing.
        must_succeed: raise CommandFailed unless it ends with exit status 0 in time.

    Raises:
        BadInput: the time limit is none.
        ClusterError: the host is not running.
        CommandFailed: it failed, or was ended at its time limit.
    """
    limit = checked_limit(timeout, "timeout")

    def show(text: str) -> None:
        if not quiet:
            print(text, end="", flush=True)

    show(f"{host.name}$ {shlex.join(command)}\n")
    completed = followed(host, command, limit, environment, show)
    if must_succeed and not completed.ok:
        raise CommandFailed(completed)
    return completed


def followed(
    host: Host,
    command: Sequence[str],
    limit: float,
    environment: dict[str, str] | None,
    show: Callable[[str], None],
) -> Completed:
    """Run a command on a host to its end or time limit, and show what it prints as it comes."""
    begin, output = time.monotonic(), []
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with started(host, command, environment, **pipes) as process, process.stdout:
        for text in output_of(process, begin + limit):
            output.append(text)
            show(text)
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, begin + limit - time.monotonic()))
        returncode, seconds = process.poll(), time.monotonic() - begin
    return Completed(
        host.name,
        shlex.join(command),
        TIME_LIMIT_STATUS if returncode is None else exit_status(returncode),
        "".join(output),
        seconds,
        timed_out=returncode is None,
    )


def exit_status(returncode: int) -> int:
    """Return the exit status as a shell gives it: 128 and the signal's number for a signal."""
    return returncode if returncode >= 0 else 128 - returncode


def execute_here(host: Host, command: Sequence[str], timeout: float) -> int:
    """Run a command on a host with this terminal as its own, and return its exit status.

    Raises:
        ClusterError: the host is not running, or the command was ended at its time limit.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(128 + signal.SIGHUP))
    with started(host, command, None) as process:
        try:
            return exit_status(process.wait(timeout))
        except subprocess.TimeoutExpired:
            failed = Completed(host.name, shlex.join(command), TIME_LIMIT_STATUS, "", timeout, True)
            raise CommandFailed(failed) from None
