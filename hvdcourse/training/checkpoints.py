"""Checkpoints that are whole or absent, the last few of them, and the newest one that is whole.

The newest is the one that was saved last, whatever its number: a training that begins anew in the
folder of a longer one keeps its own, and goes on with them.

A file is written under a temporary name, forced to the disk (fsync), and only then renamed, which
POSIX makes one step: https://pubs.opengroup.org/onlinepubs/9699919799/functions/rename.html. A
file that has its name is complete, also after a crash or a power cut.
"""

import io
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hvdcourse.files import PARTIAL_PREFIX, write_whole

KEEP = 3
_NAME = re.compile(r"checkpoint-(\d+)\.npz")


@dataclass(frozen=True)
class Checkpoint:
    """What was saved under a number: arrays by their name."""

    path: Path
    number: int
    arrays: dict[str, np.ndarray]


class CannotSave(OSError):
    """A checkpoint could not be written; the earlier ones are as they were."""


def saved_in(folder: str | Path) -> list[Path]:
    """Return the checkpoints in a folder, whole or not, the one that was saved last first."""
    paths = [path for path in Path(folder).glob("checkpoint-*.npz") if _NAME.fullmatch(path.name)]
    return sorted(paths, key=lambda path: (saved_at(path), number_of(path)), reverse=True)


def saved_at(path: Path) -> int:
    """Return when a checkpoint was saved, in nanoseconds."""
    return path.stat().st_mtime_ns


def number_of(path: Path) -> int:
    """Return the number that a checkpoint was saved under."""
    return int(path.stem.rpartition("-")[2])


def save(
    folder: str | Path, number: int, arrays: Mapping[str, np.ndarray], keep: int = KEEP
) -> Path:
    """Write a checkpoint, and remove all but the ``keep`` newest ones.

    Only one process calls it: rank 0.

    Args:
        folder: where the checkpoints are; it is made.
        number: of the epoch or step, not negative. A checkpoint of this number is replaced.
        arrays: what is to be saved, by name, of any shapes.
        keep: how many checkpoints stay, at least 1.

    Raises:
        CannotSave: a full disk, for one; nothing half-written stays.
        ValueError: a negative number, or ``keep`` below 1.
    """
    if number < 0 or keep < 1:
        raise ValueError(f"a number of at least 0 and keep of at least 1; got {number} and {keep}")
    folder = Path(folder)
    path = folder / f"checkpoint-{number:06d}.npz"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for partial in folder.glob(f"{PARTIAL_PREFIX}*"):
            partial.unlink(missing_ok=True)  # of a process that was killed
        latest = max(map(saved_at, saved_in(folder)), default=0)
        write_whole(path, bytes_of(arrays))
        if saved_at(path) <= latest:
            # A clock that is slow, or was set back, must not make it older than those before it.
            os.utime(path, ns=(latest + 1, latest + 1))
    except OSError as error:
        raise CannotSave(f"{path} was not saved: {error}") from error
    for old in saved_in(folder)[keep:]:
        old.unlink(missing_ok=True)
    return path


def bytes_of(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the arrays as the file that ``read`` reads."""
    # In memory first: a ZIP file that the disk has no room for complains once more, on stderr, when
    # Python gives it up.
    whole = io.BytesIO()
    np.savez(whole, **arrays)
    return whole.getvalue()


def load_newest(folder: str | Path) -> Checkpoint | None:
    """Return the newest checkpoint that is whole, or None where there is none.

    One that cannot be read is named on stderr, and left where it is.
    """
    for path in saved_in(folder):
        try:
            return Checkpoint(path, number_of(path), read(path))
        except Exception as error:  # A damaged header makes the readers raise nearly anything.
            why = str(error) or type(error).__name__
            print(f"{path} is damaged and was skipped: {why}", file=sys.stderr, flush=True)
    return None


def read(path: Path) -> dict[str, np.ndarray]:
    """Return all arrays of a file, compared with their checksums. Raises BadZipFile and others."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}
