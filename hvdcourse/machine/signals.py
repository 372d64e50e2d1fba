"""What this process does at Ctrl-C, and when it is asked to end."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def undisturbed(number: signal.Signals = signal.SIGINT) -> Iterator[None]:
    """Let no Ctrl-C come between while the block runs, such as a second one while it cleans up.

    Args:
        number: another signal that is to be ignored instead.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)


def exit_when_terminated() -> None:
    """Have a SIGTERM, or a terminal that closes, end this process as an exit: it cleans up.

    A process that was told to ignore one of them, as by ``nohup``, goes on doing so.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _exit_once)


def _exit_once(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)
