"""The queue of the checks on a machine that many share, so that each has the time it needs.

HVDCOURSE_QUEUE names a folder for it, on a disk of the machine. Each check has a ticket there: a
numbered file on which it holds a lock. Linux frees the lock of a check that was killed, so that
nobody waits for that one. Without the variable no check waits.
"""

import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hvdcourse.errors import BadInput
from hvdcourse.launch.display import in_notebook
from hvdcourse.machine.cores import usable_cores
from hvdcourse.machine.signals import undisturbed

QUEUE_VARIABLE = "HVDCOURSE_QUEUE"
CORES_OF_A_CHECK = 2
_LOOK_SECONDS = 0.5


def tell(line: str) -> None:
    """Print a line at once: on stderr, beside JSON; in a notebook, where that is red, on stdout."""
    print(line, file=sys.stdout if in_notebook() else sys.stderr, flush=True)


@contextmanager
def turn(say: Callable[[str], None] = tell) -> Iterator[None]:
    """Wait for this check's turn, and keep its place until the block ends.

    Args:
        say: is given a line whenever the place in the queue has changed.

    Raises:
        BadInput: HVDCOURSE_QUEUE names no folder that can hold the queue.
    """
    folder = os.environ.get(QUEUE_VARIABLE)
    if not folder:
        yield
        return
    with in_queue(Path(folder), max(1, usable_cores() // CORES_OF_A_CHECK), say):
        yield


@contextmanager
def in_queue(folder: Path, at_a_time: int, say: Callable[[str], None]) -> Iterator[None]:
    """Do what ``turn`` does, with so many checks at a time."""
    try:
        ticket, lock = take_ticket(folder)
    except OSError as error:
        raise BadInput(
            f"{QUEUE_VARIABLE} must name a folder of this machine that everybody can write to; "
            f"got {str(folder)!r}: {error.strerror}"
        ) from None
    try:
        with undisturbed(signal.SIGTSTP):  # Stopped by Ctrl-Z, it would keep its place forever.
            said = None
            while (ahead := checks_ahead(ticket)) >= at_a_time:
                if ahead != said:
                    say(place_in_words(ahead, at_a_time))
                    said = ahead
                time.sleep(_LOOK_SECONDS)
            yield
    finally:
        with suppress(FileNotFoundError):
            ticket.unlink()
        os.close(lock)


def place_in_words(ahead: int, at_a_time: int) -> str:
    """Return what a check that waits tells its learner."""
    checks = "1 check is" if ahead == 1 else f"{ahead} checks are"
    return f"waiting: {checks} ahead of yours; this machine runs {at_a_time} at a time"


def take_ticket(folder: Path) -> tuple[Path, int]:
    """Return a new ticket, behind all others, and the file descriptor that holds its lock.

    Raises:
        OSError: there is no such folder, or it cannot be written to, or locks nothing.
    """
    numbering = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(numbering, fcntl.LOCK_EX)
        for left_by_a_kill in (ticket for ticket in tickets(folder) if not is_held(ticket)):
            with suppress(OSError):  # It is another learner's.
                left_by_a_kill.unlink()
        number = 1 + max((int(ticket.name) for ticket in tickets(folder)), default=0)
        ticket = folder / str(number)
        lock = os.open(ticket, os.O_RDONLY | os.O_CREAT | os.O_EXCL)
        os.fchmod(lock, 0o644)
        fcntl.flock(lock, fcntl.LOCK_EX)
    finally:
        os.close(numbering)
    return ticket, lock


def tickets(folder: Path) -> list[Path]:
    """Return all tickets in the folder."""
    return [path for path in folder.iterdir() if path.name.isdecimal()]


def checks_ahead(ticket: Path) -> int:
    """Return how many checks have a lower number, those that run included."""
    number = int(ticket.name)
    return sum(is_held(other) for other in tickets(ticket.parent) if int(other.name) < number)


def is_held(ticket: Path) -> bool:
    """Tell whether the check of this ticket is still there."""
    try:
        file = os.open(ticket, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
