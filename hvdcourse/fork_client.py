"""Starts the supervisors of runs: as new processes, or forked where TensorFlow is imported."""

import os
import re
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import psutil

from hvdcourse.environment import OBSERVE_VARIABLE
from hvdcourse.fork_server import READY, REQUEST
from hvdcourse.gpus import visible_gpus

# On a busy machine the imports have taken half a minute.
START_SECONDS = 180.0
# A process, or a library, reads variables with these beginnings when it starts, and not later.
_READ_AT_START = ("PYTHON", "LD_", "MALLOC_", "TF_", "OMP_", "OPENBLAS_", "MKL_", "CUDA_", "OPAL_")
_READ_AT_START += ("COVERAGE_",)
_NEEDS_TENSORFLOW = re.compile(r"^\s*(?:import|from) +(?:tensorflow|horovod)\b", re.MULTILINE)


class ForkedProcess:
    """A process that the server has forked: as much of ``subprocess.Popen`` as its user needs."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes]):
        self.stdin, self.stdout = stdin, stdout
        try:
            self.process: psutil.Process | None = psutil.Process(pid)
        except psutil.NoSuchProcess:
            self.process = None

    def wait(self, timeout: float | None = None) -> None:
        """Wait for its end. Raises subprocess.TimeoutExpired after so many seconds."""
        try:
            if self.process is not None:
                self.process.wait(timeout)
        except psutil.TimeoutExpired:
            raise subprocess.TimeoutExpired("supervisor", timeout) from None

    def kill(self) -> None:
        """End it, unless it has ended."""
        if self.process is not None and self.process.is_running():
            self.process.kill()


class ForkServer:
    """The fork server of this process, from the first run that can use it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen | None = None
        self.connection: socket.socket | None = None
        self.environment: dict[str, str] = {}
        self.owner = 0

    @property
    def pid(self) -> int | None:
        """The server's process, or None where there is none."""
        return self.process.pid if self.process and self.owner == os.getpid() else None

    def prepare(self, environment: dict[str, str]) -> None:
        """Start the server, unless there is one with these settings. Raises OSError if it fails."""
        settings = read_at_start(environment)
        if self.pid is None or self.environment != settings:
            self.stop()
            self.start(settings)

    def start_process(self, environment: dict[str, str], log: IO[bytes]) -> ForkedProcess:
        """Fork a supervisor. Raises OSError where the server cannot be had."""
        try:
            self.prepare(environment)
            return self.fork(log)
        except BaseException:
            # It may have been interrupted between a request and its answer.
            self.stop()
            raise

    def start(self, settings: dict[str, str]) -> None:
        """Start the server. Raises OSError where it does not get ready."""
        self.connection, theirs = socket.socketpair()
        self.environment, self.owner = settings, os.getpid()
        try:
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, "-u", "-m", "hvdcourse.fork_server"],
                    stdin=theirs,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    env={**without(os.environ), **settings},
                )
            self.connection.settimeout(START_SECONDS)
            if self.connection.recv(len(READY), socket.MSG_WAITALL) != READY:
                raise ConnectionError("the fork server ended while it started")
        except BaseException:
            # Its late answer would be taken for the answer to the next request.
            self.stop()
            raise

    def fork(self, log: IO[bytes]) -> ForkedProcess:
        """Have a process forked. Raises OSError where the server does not answer."""
        their_stdin, our_stdin = os.pipe()
        our_stdout, their_stdout = os.pipe()
        stdin, stdout = os.fdopen(our_stdin, "wb"), os.fdopen(our_stdout, "rb")
        try:
            files = [their_stdin, their_stdout, log.fileno()]
            socket.send_fds(self.connection, [REQUEST], files)
            answer = self.connection.recv(4, socket.MSG_WAITALL)
            if len(answer) != 4:
                raise ConnectionError("the fork server has ended")
        except BaseException:
            stdin.close()
            stdout.close()
            raise
        finally:
            os.close(their_stdin)
            os.close(their_stdout)
        return ForkedProcess(int.from_bytes(answer, "big"), stdin, stdout)

    def stop(self) -> None:
        """End the server, if there is one. Runs that go on are not touched."""
        if self.connection is not None:
            self.connection.close()
        if self.pid is not None:
            self.process.kill()
            self.process.wait()
        self.process = self.connection = None


FORK_SERVER = ForkServer()


def read_at_start(environment: dict[str, str]) -> dict[str, str]:
    """Return the variables that must stand before a process starts."""
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


def without(environment: dict[str, str]) -> dict[str, str]:
    """Return the variables that may change after a process has started."""
    return {
        name: value for name, value in environment.items() if not name.startswith(_READ_AT_START)
    }


def can_fork(job: dict[str, Any], environment: dict[str, str]) -> bool:
    """Tell whether the job's ranks gain by a fork, and are the same as if newly started."""
    wanted = environment.get("HVDCOURSE_FORK", "1") != "0"
    if not wanted or job["backend"] != "gloo" or visible_gpus():
        return False
    if job["environment"].get(OBSERVE_VARIABLE):
        # What observes a rank imports them, whatever the script does.
        return True
    return bool(_NEEDS_TENSORFLOW.search(Path(job["script"]).read_text(errors="replace")))


def prepare(job: dict[str, Any]) -> None:
    """Do what takes long, if anything, before the job's folder is made.

    Whoever kills this process meanwhile leaves no folder behind.
    """
    environment = {**os.environ, **job["environment"]}
    if can_fork(job, environment):
        with FORK_SERVER.lock, suppress(OSError):
            FORK_SERVER.prepare(environment)


def start_supervisor(job: dict[str, Any], log: IO[bytes]) -> subprocess.Popen | ForkedProcess:
    """Start the supervisor of a job; it reads the job from its stdin."""
    environment = {**os.environ, **job["environment"]}
    if can_fork(job, environment):
        # Where there is no server, a new process will say what is wrong.
        with FORK_SERVER.lock, suppress(OSError):
            return FORK_SERVER.start_process(environment, log)
    return subprocess.Popen(
        [sys.executable, "-m", "hvdcourse.supervisor"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    )
