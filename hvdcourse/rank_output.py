"""Reads what ranks print, whole lines at a time, and knows which rank each line is from."""

import os
import re
from typing import IO

CHUNK = 65536
# Open MPI's mpirun --tag-output puts the job and the rank before every line.
_MPIRUN_TAG = re.compile(r"^\[\d+,(?P<rank>\d+)\]<(?P<stream>stdout|stderr)>:")


class OutputReader:
    """Turns one pipe into lines; ``rank`` None means mpirun's pipe, whose lines carry a tag."""

    def __init__(self, pipe: IO[bytes], rank: int | None, stream: str):
        self.pipe, self.rank, self.stream = pipe, rank, stream
        self.pending = b""
        self.closed = False
        os.set_blocking(pipe.fileno(), False)

    def fileno(self) -> int:
        """Return the pipe's file descriptor, by which a selector watches it."""
        return self.pipe.fileno()

    def read(self) -> list[dict[str, str | int | None]]:
        """Return the complete lines that have arrived; at the pipe's end also the last part."""
        try:
            chunk = os.read(self.fileno(), CHUNK)
        except BlockingIOError:
            return []
        self.closed = chunk == b""
        *lines, self.pending = (self.pending + chunk).split(b"\n")
        if self.pending and (self.closed or len(self.pending) > CHUNK):
            lines.append(self.pending)
            self.pending = b""
        return [self.describe(line.decode(errors="replace")) for line in lines]

    def describe(self, line: str) -> dict[str, str | int | None]:
        """Return the line with its rank and stream."""
        rank, stream = self.rank, self.stream
        if rank is None and (tag := _MPIRUN_TAG.match(line)):
            rank, stream, line = int(tag["rank"]), tag["stream"], line[tag.end() :]
        return {"rank": rank, "stream": stream, "line": line}
