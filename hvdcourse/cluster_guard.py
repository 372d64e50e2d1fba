"""Removes the hosts of ``cluster.hosts`` where the process that made them ends before it does so.

``python -m hvdcourse.cluster_guard OWNER`` reads its stdin. Its maker says DONE once the hosts are
gone; a kernel that was killed says nothing, and the pipe is closed.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

DONE = b"done"


@contextmanager
def guarded(owner: str) -> Iterator[None]:
    """Have the owner's hosts removed should this process die in the block."""
    guard = subprocess.Popen(
        [sys.executable, "-m", "hvdcourse.cluster_guard", owner],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            guard.communicate(DONE)


def main() -> None:
    """Wait for the end of the process that made the hosts, and clean up after it if need be."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read() == DONE:
        return
    from hvdcourse import cluster

    cluster.down(sys.argv[1])


if __name__ == "__main__":
    main()
