"""Runs a command on a host, and leaves nothing of it behind on any host."""

import codecs
import os
import selectors
import shlex
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

import psutil

from hvdcourse.cluster.host import MARK_VARIABLE, NO_BYTECODE, first_process
from hvdcourse.cluster.plan import ClusterError, Host
from hvdcourse.errors import checked_limit
from hvdcourse.machine.processes import end_all
from hvdcourse.machine.signals import undisturbed

TICK_SECONDS = 0.1
# How long what is left of a command has to end by itself.
GRACE_SECONDS = 3.0
# A connection that was just being made may start one more process.
SETTLE_SECONDS = 0.2
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
    # If this process is killed, nsenter is killed too, and the command is asked to end.
    with_us, with_nsenter = ("setpriv", "--pdeathsig", "KILL"), ("setpriv", "--pdeathsig", "TERM")
    return [*with_us, *enter, "env", f"--chdir={os.getcwd()}", *with_nsenter, *command]


def environment_of(mark: str, more: dict[str, str] | None) -> dict[str, str]:
    """Return the environment of a command on a host."""
    # On a busy machine one rank may import TensorFlow half a minute later than another. The hosts
    # have the cores of one machine together: a rank that waits over MPI lets others go first.
    patient = {"HOROVOD_GLOO_TIMEOUT_SECONDS": "300", "OMPI_MCA_mpi_yield_when_idle": "1"}
    # Open MPI's folders then go with the host.
    fixed = {"OMPI_MCA_orte_tmpdir_base": "/run", NO_BYTECODE: "1", MARK_VARIABLE: mark}
    return {**patient, **os.environ, **(more or {}), **fixed}


def processes_marked(mark: str) -> list[psutil.Process]:
    """Return the processes of one command, on whatever host."""
    processes = psutil.process_iter(["environ"])
    return [each for each in processes if (each.info["environ"] or {}).get(MARK_VARIABLE) == mark]


@contextmanager
def started(
    host: Host, command: Sequence[str], more: dict[str, str] | None, *, piped: bool
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command on a host; whatever is left of it at the end of the block is ended."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        host_command(host, command),
        env=environment_of(mark, more),
        stdin=subprocess.DEVNULL if piped else None,
        stdout=subprocess.PIPE if piped else None,
        stderr=subprocess.STDOUT if piped else None,
    )
    try:
        yield process
    finally:
        with undisturbed():
            end_all(
                lambda: processes_marked(mark),
                # Where the command has ended, its ranks on other hosts have a moment to see it.
                patience=0 if process.poll() is None else GRACE_SECONDS,
                grace=GRACE_SECONDS,
                settle=SETTLE_SECONDS,
            )
            process.kill()
            process.wait()


def output_of(
    process: subprocess.Popen[bytes], stream: IO[bytes], deadline: float
) -> Iterator[str]:
    """Yield what a process prints, as it comes, until it ends or the deadline has passed."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    with stream, selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            if selector.select(TICK_SECONDS):
                data = os.read(stream.fileno(), 65536)
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
    line, texts = shlex.join(command), []
    if not quiet:
        print(f"{host.name}$ {line}", flush=True)
    begin = time.monotonic()
    with started(host, command, environment, piped=True) as process:
        assert process.stdout is not None
        for text in output_of(process, process.stdout, begin + limit):
            texts.append(text)
            if not quiet:
                print(text, end="", flush=True)
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, begin + limit - time.monotonic()))
        returncode, seconds = process.poll(), time.monotonic() - begin
    status = TIME_LIMIT_STATUS if returncode is None else exit_status(returncode)
    completed = Completed(host.name, line, status, "".join(texts), seconds, returncode is None)
    if must_succeed and not completed.ok:
        raise CommandFailed(completed)
    return completed


def exit_status(returncode: int) -> int:
    """Return the exit status as a shell gives it: 128 and the signal's number for a signal."""
    return returncode if returncode >= 0 else 128 - returncode


def execute_here(host: Host, command: Sequence[str], timeout: float) -> int:
    """Run a command on a host with this terminal as its own, and return its exit status.

    Raises:
        ClusterError: the host is not running.
        CommandFailed: the command was ended at its time limit.
    """
    with started(host, command, None, piped=False) as process:
        try:
            return exit_status(process.wait(timeout))
        except subprocess.TimeoutExpired:
            line = shlex.join(command)
            completed = Completed(host.name, line, TIME_LIMIT_STATUS, "", timeout, True)
            raise CommandFailed(completed) from None
