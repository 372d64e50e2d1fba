"""Ends processes: first by waiting, then by asking, then by force."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import psutil

TICK_SECONDS = 0.05
# How long the kernel may take to end a killed process that waits for a disk.
KILL_SECONDS = 10.0


def end_all(
    remaining: Callable[[], Iterable[psutil.Process]],
    *,
    patience: float = 0.0,
    grace: float = 2.0,
    settle: float = TICK_SECONDS,
) -> list[psutil.Process]:
    """End processes, and whatever they start meanwhile, until none is listed any more.

    A process that has ended does not count, also while its parent has yet to ask for its status.
    This function does not ask: a parent still gets the status from its own ``Popen``.

    Args:
        remaining: lists the processes that are to end, as they are at each call. Those that they
            have started must be among them, also after their parent has ended.
        patience: seconds that they have to end by themselves, before they are asked to.
        grace: seconds from SIGTERM to SIGKILL; 0 means SIGKILL at once.
        settle: seconds for which none may be listed before it is believed. A listing can miss a
            process that starts during it while its parent ends.

    Returns:
        Those that are alive 10 seconds after SIGKILL: none, unless the kernel holds one back.
    """
    left: list[psutil.Process] = []
    for number, seconds in (
        (None, patience),
        (signal.SIGTERM, grace),
        (signal.SIGKILL, KILL_SECONDS),
    ):
        if seconds > 0:
            left = signal_and_wait(remaining, number, seconds, settle)
            if not left:
                break
    return left


def signal_and_wait(
    remaining: Callable[[], Iterable[psutil.Process]],
    number: signal.Signals | None,
    seconds: float,
    settle: float,
) -> list[psutil.Process]:
    """Send each listed process the signal once, until none is left or the time is over."""
    signaled: set[psutil.Process] = set()
    deadline = time.monotonic() + seconds
    none_since: float | None = None
    while True:
        alive = [process for process in remaining() if is_alive(process)]
        now = time.monotonic()
        if alive:
            none_since = None
            if now >= deadline:
                return alive
        elif none_since is None:
            none_since = now
        elif now - none_since >= settle:
            return []
        for process in alive:
            if number is not None and process not in signaled:
                signaled.add(process)
                with suppress(psutil.Error):
                    process.send_signal(number)
        time.sleep(TICK_SECONDS)


def is_alive(process: psutil.Process) -> bool:
    """Tell whether a process has not ended yet; a zombie has."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def processes_of_session(session: int | None) -> list[psutil.Process]:
    """Return the processes whose session has this number: that of the process which began it."""
    processes = []
    for process in psutil.process_iter():
        with suppress(OSError):
            if os.getsid(process.pid) == session:
                processes.append(process)
    return processes
