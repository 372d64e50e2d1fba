"""Checkpoints that are whole or absent, the last few of them, and the newest one that is whole.

The newest has the highest number. A training that begins anew in the folder of a longer one removes
those whose number it has not reached yet, and so goes on with its own.

A file is written under a temporary name, forced to the disk (fsync), and only then renamed, which
POSIX makes one step: https://pubs.opengroup.org/onlinepubs/9699919799/functions/rename.html. A
file that has its name is complete, also after a crash or a power cut.
"""

import io
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hvdcourse.files import PARTIAL_PREFIX, write_whole

KEEP = 3
_NAME = re.compile(r"checkpoint-\d+\.npz")


@dataclass(frozen=True)
class Checkpoint:
    """What was saved under a number: arrays by their name."""

    path: Path
    number: int
    arrays: dict[str, np.ndarray]


def number_of(path: Path) -> int:
    """Return the number that a checkpoint was saved under."""
    return int(path.stem.rpartition("-")[2])


def saved_in(folder: str | Path) -> list[Path]:
    """Return the checkpoints in a folder, whole or not, the newest first."""
    paths = [path for path in Path(folder).glob("checkpoint-*.npz") if _NAME.fullmatch(path.name)]
    return sorted(paths, key=number_of, reverse=True)


def save(
    folder: str | Path, number: int, arrays: Mapping[str, np.ndarray], keep: int = KEEP
) -> Path:
    """Write a checkpoint; of the others stay the ``keep`` - 1 before it, and none after it.

    Only one process calls it: rank 0.

    Args:
        folder: where the checkpoints are; it is made.
        number: of the epoch or step, not negative. A checkpoint of this number is replaced.
        arrays: what is to be saved, by name, of any shapes.
        keep: how many checkpoints stay, at least 1.

    Raises:
        OSError: a full disk, for one; nothing half-written stays, and the earlier ones are there.
        ValueError: a negative number, or ``keep`` below 1.
    """
    if number < 0 or keep < 1:
        raise ValueError(f"a number of at least 0 and keep of at least 1; got {number} and {keep}")
    folder = Path(folder)
    path = folder / f"checkpoint-{number:06d}.npz"
    folder.mkdir(parents=True, exist_ok=True)
    for partial in folder.glob(f"{PARTIAL_PREFIX}*"):
        partial.unlink(missing_ok=True)  # of a process that was killed
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    write_whole(path, content.getvalue())
    saved = saved_in(folder)
    stay = [other for other in saved if number_of(other) <= number][:keep]
    for old in set(saved).difference(stay):
        old.unlink(missing_ok=True)
    return path


def load_newest(folder: str | Path) -> Checkpoint | None:
    """Return the newest checkpoint that is whole, or None where there is none.

    One that cannot be read is named on stderr, and left where it is.
    """
    for path in saved_in(folder):
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            return Checkpoint(path, number_of(path), arrays)
        except Exception as error:  # A damaged header makes the readers raise nearly anything.
            why = str(error) or type(error).__name__
            print(f"{path} is damaged and was skipped: {why}", file=sys.stderr, flush=True)
    return None
