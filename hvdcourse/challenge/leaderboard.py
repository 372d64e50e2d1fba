"""The leaderboard of a class: a file with one JSON line for each score, which anyone may share."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from hvdcourse.challenge.score import Score
from hvdcourse.checks.progress import digest_of_script, state_folder
from hvdcourse.errors import BadInput
from hvdcourse.files import append_line
from hvdcourse.machine.cores import usable_cores

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


def add(score: Score, name: str, file: Path) -> None:
    """Append a score; others may append at the same time.

    Raises:
        OSError: the file cannot be written, or another process has held its lock for 10 s.
    """
    entry = {
        "name": checked_name(name),
        "points": score.points,
        "parts": {part.name: part.points for part in score.parts},
        "when": datetime.now().isoformat(timespec="seconds"),
        "cores": usable_cores(),
        "script": digest_of_script(Path(score.script)),
        **({"report": asdict(score.report)} if score.report else {}),
    }
    append_line(file, json.dumps(entry), _LOCK_SECONDS)


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
