"""What the machine has to do while something goes on."""

import os
import threading
import time
from contextlib import suppress

import psutil
from server import processes_below

_LOOK_SECONDS = 2


def memory_used() -> int:
    """Return the bytes that all processes of the trial hold; what they share counts once."""
    total = 0
    for process in processes_below():
        with suppress(psutil.Error):
            total += process.memory_full_info().pss
    return total


class Load:
    """Watches the machine while the block runs."""

    def __enter__(self) -> "Load":
        self.ended, self.began = threading.Event(), time.monotonic()
        self.memory, self.load = memory_used(), 0.0
        psutil.cpu_percent()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ended.set()
        self.thread.join()
        self.seconds, self.busy = time.monotonic() - self.began, psutil.cpu_percent()

    def _watch(self) -> None:
        while True:
            self.load = max(self.load, os.getloadavg()[0])
            self.memory = max(self.memory, memory_used())
            if self.ended.wait(_LOOK_SECONDS):
                return

    def __str__(self) -> str:
        return (
            f"{self.seconds:.0f} s, cores busy {self.busy:.0f} %, highest load average "
            f"{self.load:.1f}, {self.memory / 2**30:.1f} GiB in use"
        )
