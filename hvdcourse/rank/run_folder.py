"""The folder in which the ranks of one run leave what they want known about them.

Every rank writes files of its own, so no two processes ever write the same one.
"""

import json
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from hvdcourse.files import write_whole
from hvdcourse.rank.variables import RUN_FOLDER_VARIABLE

STACK_SECONDS = 2.0
# The outermost frames come last: that of the rank's own main, or dots in the place of what is left.
_WHOLE_STACK = re.compile(r'rank/main\.py", line \d+ in main\n|^  \.\.\.\n', re.MULTILINE)


def plain(value: Any) -> Any:
    """Return the value as JSON can hold it: tensors and arrays become lists."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    return value


class RunFolder:
    """Names, writes and reads the files of one run."""

    def __init__(self, path: str | Path):
        self.path = Path(path)

    @classmethod
    def of_this_process(cls) -> "RunFolder | None":
        """Return the folder of the run that this process belongs to, or None outside a run."""
        path = os.environ.get(RUN_FOLDER_VARIABLE)
        return cls(path) if path else None

    def stack_file(self, rank: int) -> Path:
        """Where a rank writes its call stack when the supervisor asks for it."""
        return self.path / f"stack_{rank}.txt"

    def wait_for_stacks(self, ranks: Iterable[int]) -> None:
        """Wait until all of these ranks that run have written their call stacks, or 2 seconds."""
        deadline = time.monotonic() + STACK_SECONDS
        while any(map(self.lacks_stack, ranks)) and time.monotonic() < deadline:
            time.sleep(0.02)

    def lacks_stack(self, rank: int) -> bool:
        """Tell whether a rank runs, and has not written its call stack to the end."""
        started = self.read_state(rank, "started")
        if started is None or self.read_state(rank, "ended") is not None:
            return False
        try:
            os.kill(started["pid"], 0)
        except ProcessLookupError:
            return False
        return not _WHOLE_STACK.search(self.stack_file(rank).read_text(errors="replace"))

    def temporary_files(self) -> Path:
        """Where ranks put temporary files, so that those of a killed one go with the run."""
        path = self.path / "temporary"
        path.mkdir(exist_ok=True)
        return path

    def pipe(self, rank: int, stream: str) -> Path:
        """Where a rank prints to that mpirun has started; over Gloo there is no such file."""
        return self.path / f"{stream}_{rank}.pipe"

    def write_state(self, rank: int, name: str, **fields: Any) -> None:
        """Write the record ``name`` (``started`` or ``ended``) of a rank, whole or not at all."""
        write_whole(self.path / f"{name}_{rank}.json", json.dumps(fields), durable=False)

    def read_state(self, rank: int, name: str) -> dict[str, Any] | None:
        """Return the record ``name`` of a rank, or None where it was never written."""
        try:
            return json.loads((self.path / f"{name}_{rank}.json").read_text())
        except FileNotFoundError:
            return None

    def append(self, rank: int, kind: str, entry: dict[str, Any]) -> None:
        """Append one JSON line to a rank's ``metrics`` or ``evidence``; arrays become lists."""
        with (self.path / f"{kind}_{rank}.jsonl").open("a") as file:
            file.write(json.dumps(plain(entry)) + "\n")

    def lines_as_they_come(self, rank: int, kind: str) -> "LineFollower":
        """Return what reads a rank's JSON lines, each once, while the rank appends to them."""
        return LineFollower(self.path / f"{kind}_{rank}.jsonl")

    def read_lines(self, rank: int, kind: str) -> list[dict[str, Any]]:
        """Return a rank's JSON lines; a last line cut off by a kill is left out."""
        return self.lines_as_they_come(rank, kind).read()


class LineFollower:
    """Reads the JSON lines of a file that grows."""

    def __init__(self, path: Path):
        self.path, self.offset = path, 0

    def read(self) -> list[dict[str, Any]]:
        """Return the whole lines that were appended since the last call."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self.offset += len(whole)
        return [json.loads(line) for line in whole.split(b"\n") if line]
