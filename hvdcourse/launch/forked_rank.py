"""Ranks that are forked from a process that has imported TensorFlow already."""

import atexit
import os
import random
import signal
import sys
import threading
import traceback
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
            run_forked(words, environment, their_out, their_err)
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


def run_forked(words: list[str], environment: dict[str, str], out: int, err: int) -> NoReturn:
    """Run this forked process on as a newly started rank, which prints into these files."""
    status = 1
    try:
        # Where Linux shares out cores by session, ranks in one session were seen to keep all cores
        # for seconds, and JupyterLab and other runs had none. Each in its own, they share.
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["rank_main", *words]
        # A new process would have drawn its own; these came with the fork.
        random.seed()
        np.random.seed()
        rank_main.main()
    except SystemExit as request:
        # The script's own status; the system keeps eight bits of it.
        status = int(request.code or 0) & 0xFF
    except BaseException:
        traceback.print_exc()
    finally:
        end_process(status)


def end_process(status: int) -> NoReturn:
    """End as a Python process ends, but for what it shares with the one it was forked from."""
    # Python's own way to wait for threads: it first tells those of an open pool to end.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
