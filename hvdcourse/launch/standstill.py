"""Tells whether the ranks of a run stand still: nobody computes, and nobody prints."""

import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from hvdcourse.rank.run_folder import RunFolder

# Horovod's background thread wakes every millisecond: a waiting rank used 0.12 of a core.
IDLE_SHARE_OF_A_CORE = 0.25
CPU_WINDOW_SECONDS = 2.0
FREE_PERCENT = 10.0
# Where no core is free, ranks that wait for one look as if they stood still, and get more time.
BUSY_PATIENCE = 4
# To drop an iterator of tf.data may mean to wait until its tuner wakes, which sleeps for up
# to as long as the iterator was in use, at most a minute.
TUNER_SECONDS = 65.0
_WORKING = (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)


class StandstillWatch:
    """Watches ``np`` ranks; ``seconds`` is how long they may stand still.

    Args:
        np: how many ranks there are.
        seconds: the caller's limit; there is more time on a busy machine.
        folder: where the ranks say which processes they are.
        processes: returns all processes of the run.
    """

    def __init__(
        self,
        np: int,
        seconds: float,
        folder: RunFolder,
        processes: Callable[[], list[psutil.Process]],
    ):
        self.np, self.seconds, self.folder, self.processes = np, seconds, folder, processes
        self.began = self.idle_since = self.last_cpu_check = time.monotonic()
        self.last_cpu_seconds, self.machine_is_busy = 0.0, False
        self.stood_still = 0.0
        # The next call tells of the time since this one, not since psutil was imported, which in a
        # forked process may be long ago.
        psutil.cpu_times_percent()

    def note_output(self) -> None:
        """Take note that a rank has printed something."""
        self.idle_since = time.monotonic()

    def stands_still(self) -> bool:
        """Tell whether no rank has computed or printed anything for longer than it may."""
        now = time.monotonic()
        if self._some_rank_works():
            self.idle_since = now
        if now - self.last_cpu_check >= CPU_WINDOW_SECONDS:
            used = sum(map(_cpu_seconds, self.processes()))
            share = (used - self.last_cpu_seconds) / (now - self.last_cpu_check)
            if share > IDLE_SHARE_OF_A_CORE * self.np:
                self.idle_since = now
            self.machine_is_busy = psutil.cpu_times_percent().idle < FREE_PERCENT
            self.last_cpu_check, self.last_cpu_seconds = now, used
        self.stood_still = now - self.idle_since
        return self.stood_still > self._patience()

    def _patience(self) -> float:
        asked_for = self.seconds * (BUSY_PATIENCE if self.machine_is_busy else 1)
        return max(asked_for, min(self.idle_since - self.began, TUNER_SECONDS))

    def _some_rank_works(self) -> bool:
        # An import from a slow disk on a busy machine uses hardly any processor time.
        for rank in range(self.np):
            started = self.folder.read_state(rank, "started")
            with suppress(psutil.Error):
                if started and psutil.Process(started["pid"]).status() in _WORKING:
                    return True
        return False


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system
