"""Ranks, and other processes, forked from one that has imported TensorFlow already."""

import atexit
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import IO, NoReturn

import numpy as np

from hvdcourse.rank import main as rank_main


class ForkedRank:
    """One rank, with as much of ``subprocess.Popen`` as the supervisor needs.

    Args:
        words: the script and its arguments.
        environment: all of the rank's environment variables.
    """

    def __init__(self, words: list[str], environment: dict[str, str]):
        self.returncode: int | None = None
        out, their_out = os.pipe()
        err, their_err = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            become(rank_main.main, ["rank_main", *words], environment, their_out, their_err)
        os.close(their_out)
        os.close(their_err)
        self.stdout: IO[bytes] = os.fdopen(out, "rb")
        self.stderr: IO[bytes] = os.fdopen(err, "rb")

    def poll(self) -> int | None:
        """Return its exit status, negative for a signal, or None while it runs."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                # Somebody else has waited for it; Popen says 0 too.
                self.returncode = 0
            else:
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


def become(
    main: Callable[[], object],
    arguments: Sequence[str],
    environment: dict[str, str],
    stdout: int,
    stderr: int,
) -> NoReturn:
    """Run this forked process on as a new one would, from ``main`` to its end.

    Args:
        main: what the process does.
        arguments: its command line, as ``sys.argv`` has it.
        environment: all of its environment variables.
        stdout: an open file to print to.
        stderr: an open file to print errors to.
    """
    status = 1
    try:
        # Where Linux shares out cores by session, ranks in one session were seen to keep all cores
        # for seconds, and JupyterLab and other runs had none. Each in its own, they share.
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = list(arguments)
        # A new process would have drawn its own; these came with the fork.
        random.seed()
        np.random.seed()
        main()
        status = 0
    except SystemExit as request:
        status = status_of(request)
    except BaseException:
        traceback.print_exc()
    finally:
        end_process(status)


def status_of(request: SystemExit) -> int:
    """Return the exit status that Python makes of a ``sys.exit``; a text is printed to stderr."""
    code = request.code
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    print(code, file=sys.stderr)
    return 1


def end_process(status: int) -> NoReturn:
    """End as a Python process ends, but for what it shares with the one it was forked from."""
    # Python's own way to wait for threads: it first tells those of an open pool to end.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
