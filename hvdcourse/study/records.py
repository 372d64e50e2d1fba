"""The records of a study: one JSON line for each finished run."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hvdcourse.data.sets import DataSet, load
from hvdcourse.files import append_line
from hvdcourse.study.condition import Condition

FORMAT = "hvdcourse study 1"
REQUIRED = {
    "condition": str,
    "settings": dict,
    "seed": int,
    "ranks": int,
    "batch_size": int,
    "global_batch_size": int,
    "data": dict,
    "steps": int,
    "epochs": list,
    "command": str,
}


@dataclass(frozen=True)
class Records:
    """What a file of records holds: whole records, and why each other line was skipped."""

    runs: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def digest(arrays: Iterable[np.ndarray]) -> str:
    """Return 16 hexadecimal digits that differ for arrays that differ."""
    sha256 = hashlib.sha256()
    for array in arrays:
        sha256.update(f"{array.dtype}{array.shape}".encode())
        sha256.update(np.ascontiguousarray(array).data)
    return sha256.hexdigest()[:16]


def data_named(name: str) -> tuple[DataSet, str]:
    """Return a data set as studies load it, and the digest of what is in it."""
    # A quarter of the memory, where many ranks each hold all images.
    data = load(name) if name == "digits" else load(name, dtype="uint8")
    return data, digest((data.train_images, data.train_labels, data.test_images, data.test_labels))


def run_key(settings: Mapping[str, Any], seed: int, data_digest: str) -> str:
    """Return what two runs have in common if and only if they are the same run.

    Settings that a record does not name have their default: they are newer than the record. Where
    a folder of images lies does not matter, only what is in it.
    """
    whole = {**asdict(Condition()), **settings, "data": data_digest}
    # A rate of 1 and one of 1.0 are the same.
    whole = {name: float(v) if type(v) is int else v for name, v in whole.items()}
    return json.dumps([whole, seed], sort_keys=True)


def key_of(record: Mapping[str, Any]) -> str:
    """Return the key of the run that the record is of."""
    return run_key(record["settings"], record["seed"], record["data"]["fingerprint"])


def problem_with(line: str) -> str | None:
    """Return why a line is not a whole record, or None where it is one."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return "is not whole JSON, as after a write that was interrupted"
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        return f"is not a record of the format {FORMAT!r}"
    for name, kind in REQUIRED.items():
        if not isinstance(record.get(name), kind):
            return f"has no {name!r} of type {kind.__name__}"
    if not isinstance(record["data"].get("fingerprint"), str):
        return "does not say the fingerprint of its data"
    if not record["epochs"] or not all(isinstance(row, dict) for row in record["epochs"]):
        return "has no measurements of its epochs"
    return None


def read_records(*paths: str | Path) -> Records:
    """Read files of records; one that does not exist holds none.

    A line that is half-written or something else is left out, and named in ``skipped``. Of several
    records of one run, the first one counts.
    """
    records: dict[str, dict[str, Any]] = {}
    skipped = []
    for path in map(Path, paths):
        # A foreign file need not be a text, and its lines may hold what Unicode calls line ends.
        text = path.read_bytes().decode(errors="replace") if path.exists() else ""
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            if problem := problem_with(line):
                skipped.append(f"{path.name}, line {number}: {problem}; skipped")
                continue
            record = json.loads(line)
            records.setdefault(key_of(record), record)
    return Records(list(records.values()), skipped)


def append_record(path: str | Path, record: Mapping[str, Any]) -> None:
    """Append one record, so that it is on the disk when this returns.

    Ranks of several runs may write at the same time. What a kill left half-written stays a line of
    its own.
    """
    append_line(Path(path), json.dumps({"format": FORMAT, **record}, allow_nan=False))
