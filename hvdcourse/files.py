"""Files that are written whole or not at all, and lines that are appended by many."""

import os
from pathlib import Path

from filelock import FileLock, Timeout

# What a process leaves behind that is killed while it writes; hidden, so that nobody reads it.
PARTIAL_PREFIX = ".partial-"


def write_whole(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Write a file so that it has all of its content, or is as it was before.

    Where it is ``durable``, it is on the disk when this returns, and outlives a loss of power.

    Raises:
        OSError: it could not be written.
    """
    data = content.encode() if isinstance(content, str) else content
    partial = path.with_name(f"{PARTIAL_PREFIX}{os.getpid()}-{path.name}")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    if durable:
        # The new name, too, must be on the disk.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def append_line(path: Path, line: str, seconds: float = 60.0) -> None:
    """Append a line, so that it is on the disk when this returns; many may do so at a time.

    What a kill left half-written stays a line of its own.

    Raises:
        OSError: it could not be written, or another process kept the file for so many seconds.
    """
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=seconds)
    try:
        with lock, path.open("ab+") as file:
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else "\n" + line
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except Timeout:
        raise OSError(f"another process has held {lock.lock_file} for {seconds:g} s") from None
