"""The folder in which the ranks of one run leave what they want known about them.

Every rank writes files of its own, so no two processes ever write the same one.
"""

import json
import os
from pathlib import Path
from typing import Any

VARIABLE = "HVDCOURSE_RUN_FOLDER"


class RunFolder:
    """Names, writes and reads the files of one run."""

    def __init__(self, path: str | Path):
        self.path = Path(path)

    @classmethod
    def of_this_process(cls) -> "RunFolder | None":
        """Return the folder of the run that this process belongs to, or None outside a run."""
        path = os.environ.get(VARIABLE)
        return cls(path) if path else None

    def stack_file(self, rank: int) -> Path:
        """Where a rank writes its call stack when the supervisor asks for it."""
        return self.path / f"stack_{rank}.txt"

    def pipe(self, rank: int, stream: str) -> Path:
        """Where a rank prints to that mpirun has started; over Gloo there is no such file."""
        return self.path / f"{stream}_{rank}.pipe"

    def write_state(self, rank: int, name: str, **fields: Any) -> None:
        """Write the record ``name`` (``started`` or ``ended``) of a rank, whole or not at all."""
        target = self.path / f"{name}_{rank}.json"
        temporary = target.with_suffix(".partial")
        temporary.write_text(json.dumps(fields))
        temporary.rename(target)

    def read_state(self, rank: int, name: str) -> dict[str, Any] | None:
        """Return the record ``name`` of a rank, or None where it was never written."""
        try:
            return json.loads((self.path / f"{name}_{rank}.json").read_text())
        except FileNotFoundError:
            return None

    def append(self, rank: int, kind: str, entry: dict[str, Any]) -> None:
        """Append one JSON line to a rank's ``metrics`` or ``evidence``."""
        with (self.path / f"{kind}_{rank}.jsonl").open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def read_lines(self, rank: int, kind: str) -> list[dict[str, Any]]:
        """Return a rank's JSON lines; a last line cut off by a kill is left out."""
        try:
            lines = (self.path / f"{kind}_{rank}.jsonl").read_text().split("\n")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines[:-1] if line]
