"""Reads what ranks print, whole lines at a time, and knows which rank each line is from."""

import codecs
import os
from typing import IO

CHUNK = 65536


class OutputReader:
    """Turns one pipe into lines; ``rank`` None means the launcher's own messages."""

    def __init__(self, pipe: IO[bytes], rank: int | None, stream: str):
        self.pipe, self.rank, self.stream = pipe, rank, stream
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.pending = ""
        self.closed = False
        os.set_blocking(pipe.fileno(), False)

    def fileno(self) -> int:
        """Return the pipe's file descriptor, by which a selector watches it."""
        return self.pipe.fileno()

    def read(self) -> list[str]:
        """Return the complete lines that have arrived; at the pipe's end also the last part."""
        try:
            chunk = os.read(self.fileno(), CHUNK)
        except BlockingIOError:
            return []
        self.closed = chunk == b""
        text = self.decoder.decode(chunk, final=self.closed)
        *lines, self.pending = (self.pending + text).split("\n")
        if self.pending and (self.closed or len(self.pending) > CHUNK):
            lines.append(self.pending)
            self.pending = ""
        return lines
