"""The leaderboard of a class: a file with one JSON line for each score, which anyone may share."""

import json
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from rich.table import Table
from rich.text import Text

from hvdcourse.launch import BadInput
from hvdcourse.place import usable_cores
from hvdcourse.progress import fingerprint, state_folder
from hvdcourse.score import Score

LONGEST_NAME = 40
_LOCK_SECONDS = 10


def default_file() -> Path:
    """Return the leaderboard of this checkout. Raises OSError where there is no place for it."""
    return state_folder() / "leaderboard.jsonl"


def checked_name(name: str) -> str:
    """Return a name as the table shows it. Raises BadInput for an empty or a too long one."""
    shown = " ".join(name.split())
    if not 1 <= len(shown) <= LONGEST_NAME or not shown.isprintable():
        raise BadInput(
            f"a name has 1 to {LONGEST_NAME} printable characters, such as 'Team 3'; got {name!r}"
        )
    return shown


def check_writable(file: Path) -> None:
    """Raise OSError now, and not after the judgement, where a score could not be written."""
    if not file.parent.is_dir():
        raise OSError(f"{file}: there is no folder {file.parent}; make it first")
    if file.is_dir():
        raise OSError(
            f"{file} is a folder; a leaderboard is a file, such as {file / 'board.jsonl'}"
        )
    for one in (file, lock_of(file)):
        if not os.access(one if one.exists() else one.parent, os.W_OK):
            raise OSError(f"{one} cannot be written to; choose another --leaderboard")


def lock_of(file: Path) -> Path:
    """Return the file that whoever writes to a leaderboard locks."""
    return file.with_name(f".{file.name}.lock")


def make_shared(file: Path) -> int:
    """Make a file, unless it is there, for all who may write into its folder; return its mode."""
    folder = file.parent.stat()
    mode = 0o644 | (folder.st_mode & 0o022)
    with suppress(FileExistsError):
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        try:
            with suppress(PermissionError):
                os.fchown(descriptor, -1, folder.st_gid)
            os.fchmod(descriptor, mode)  # whatever the umask
        finally:
            os.close(descriptor)
    return mode


def add(score: Score, name: str, file: Path) -> dict[str, Any]:
    """Append a score, and return its line; others may append at the same time.

    Raises:
        OSError: the file cannot be written, or another process has held its lock for 10 s.
    """
    check_writable(file)
    entry = {
        "name": checked_name(name),
        "points": score.points,
        "parts": {part.name: part.points for part in score.parts},
        "when": datetime.now().isoformat(timespec="seconds"),
        "cores": usable_cores(),
        "script": fingerprint(Path(score.script)),
    }
    lock = FileLock(lock_of(file), timeout=_LOCK_SECONDS, mode=make_shared(lock_of(file)))
    make_shared(file)
    try:
        # Not "a+b": in a folder like /tmp, to open another's file as one to be made is refused.
        with lock, file.open("r+b") as board:
            # After a line that was cut off, a new one begins.
            cut_off = board.seek(0, os.SEEK_END) and file.read_bytes()[-1:] != b"\n"
            board.write(b"\n" * bool(cut_off) + json.dumps(entry).encode() + b"\n")
            board.flush()
            os.fsync(board.fileno())
    except Timeout:
        raise OSError(f"another process has held {lock.lock_file} for {_LOCK_SECONDS} s") from None
    return entry


def read(file: Path) -> list[dict[str, Any]]:
    """Return each name's best score, the highest first; damaged lines count as none."""
    best: dict[str, dict[str, Any]] = {}
    for line in file.read_text(errors="replace").splitlines() if file.exists() else ():
        try:
            entry = json.loads(line)
            name, points = str(entry["name"]), float(entry["points"])
        except (ValueError, TypeError, LookupError):
            continue
        if name not in best or points > best[name]["points"]:
            best[name] = {**entry, "name": name, "points": points}
    return sorted(best.values(), key=lambda entry: (-entry["points"], entry.get("when", "")))


def table(entries: list[dict[str, Any]]) -> Table:
    """Return the leaderboard as a table for people."""
    shown = Table("", "name", "points", "throughput", "accuracy", "when", "cores")
    for place, entry in enumerate(entries, start=1):
        parts = entry.get("parts", {})
        measured = (f"{parts.get(name, 0):g}" for name in ("throughput", "accuracy"))
        when = str(entry.get("when", "")).replace("T", " ")
        points = f"{entry['points']:g}"
        cores = str(entry.get("cores", ""))
        shown.add_row(str(place), Text(entry["name"]), points, *measured, when, cores)
    return shown
