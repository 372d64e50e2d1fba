"""The process that starts the ranks of one run, watches them, and leaves none behind.

``python -m hvdcourse.supervisor`` reads one JSON line, the job, from stdin, and prints one JSON
line per event. It ends the run when a rank fails, at the time limit, when all ranks stand still,
and when its stdin closes: the process that wanted the run has then been interrupted, or is dead.
"""

import ctypes
import json
import os
import selectors
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

import psutil

from hvdcourse.ranks import start_gloo_ranks, start_mpi_ranks
from hvdcourse.run_folder import RunFolder

PR_SET_CHILD_SUBREAPER = 36
TICK_SECONDS = 0.1
# After the first rank failed, the others have this long to end by themselves.
GRACE_SECONDS = 3.0
TERMINATE_SECONDS = 2.0
# Horovod's background thread wakes every millisecond: a waiting rank used 0.12 of a core.
IDLE_SHARE_OF_A_CORE = 0.25
CPU_WINDOW_SECONDS = 2.0
FREE_PERCENT = 10.0
# Where no core is free, ranks that wait for one look as if they stood still, and get more time.
BUSY_PATIENCE = 4
# Whoever drops an iterator of tf.data may have to wait until its tuner wakes, which sleeps for up
# to as long as the iterator was in use, at most a minute.
TUNER_SECONDS = 65.0
_WORKING = (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)


def emit(event: str, **fields: Any) -> None:
    """Print one event; a reader that has gone away is noticed on stdin instead."""
    with suppress(BrokenPipeError):
        print(json.dumps({"event": event, **fields}), flush=True)


class Supervisor:
    """Starts the processes of one job and follows them to their end."""

    def __init__(self, job: dict[str, Any]):
        self.job = job
        self.folder = RunFolder(job["folder"])
        self.reason: str | None = None
        self.deadline = time.monotonic() + job["timeout"]
        self.grace_ends: float | None = None
        self.selector = selectors.DefaultSelector()
        self.began = self.idle_since = self.last_cpu_check = time.monotonic()
        self.stood_still = 0.0
        self.last_cpu_seconds, self.machine_is_busy = 0.0, False
        start = start_gloo_ranks if job["backend"] == "gloo" else start_mpi_ranks
        self.processes, readers = start(job)
        self.statuses: dict[int | None, int] = {}
        self.metrics_seen = 0
        for reader in readers:
            self.selector.register(reader, selectors.EVENT_READ, reader)
        os.set_blocking(sys.stdin.fileno(), False)
        self.selector.register(sys.stdin, selectors.EVENT_READ, None)

    def follow(self) -> None:
        """Forward output and metrics until there is a reason to end the run, then end it."""
        while self.reason is None:
            wanted = self.forward_output()
            self.forward_metrics()
            self.collect_statuses()
            self.reason = self.reason_to_end() if wanted else "interrupted"
        self.end_everything()

    def reason_to_end(self) -> str | None:
        """Return why the run is over, or None while it goes on."""
        failed, now = self.some_rank_failed(), time.monotonic()
        if len(self.statuses) == len(self.processes):
            return "failed" if failed else "ended"
        if failed:
            if self.grace_ends is None:
                self.grace_ends = now + GRACE_SECONDS
                self.ask_for_stacks()
            return "failed" if now >= self.grace_ends else None
        if now >= self.deadline:
            return "time limit"
        return "standstill" if self.stands_still() else None

    def forward_output(self) -> bool:
        """Emit what the ranks have printed; return False once nobody wants the run any more."""
        for key, _ in self.selector.select(TICK_SECONDS):
            if key.data is None:
                if os.read(sys.stdin.fileno(), 1024) == b"":
                    return False
                continue
            for line in key.data.read():
                emit("output", **line)
                self.idle_since = time.monotonic()
            if key.data.closed:
                self.selector.unregister(key.data)
        return True

    def forward_metrics(self) -> None:
        """Emit what rank 0 has reported of its training since the last look."""
        entries = self.folder.read_lines(0, "metrics")
        for entry in entries[self.metrics_seen :]:
            emit("metrics", **entry)
        self.metrics_seen = len(entries)

    def collect_statuses(self, by_launcher: bool = False) -> None:
        """Emit the exit status of every process that has ended since the last look."""
        for rank, process in self.processes.items():
            if rank not in self.statuses and process.poll() is not None:
                self.statuses[rank] = process.returncode
                end = {"status": process.returncode, "time": time.time()}
                emit("exit", rank=rank, by_launcher=by_launcher, **end)

    def some_rank_failed(self) -> bool:
        """Tell whether a process or a rank has ended badly."""
        if any(self.statuses.values()):
            return True
        ended = (self.folder.read_state(rank, "ended") for rank in range(self.job["np"]))
        return any(state and state["status"] != 0 for state in ended)

    def stands_still(self) -> bool:
        """Tell whether no rank has computed or printed anything for longer than it may."""
        now = time.monotonic()
        if self.some_rank_works():
            self.idle_since = now
        if now - self.last_cpu_check >= CPU_WINDOW_SECONDS:
            used = sum(self.cpu_seconds(process) for process in self.descendants())
            share = (used - self.last_cpu_seconds) / (now - self.last_cpu_check)
            if share > IDLE_SHARE_OF_A_CORE * self.job["np"]:
                self.idle_since = now
            self.machine_is_busy = psutil.cpu_times_percent().idle < FREE_PERCENT
            self.last_cpu_check, self.last_cpu_seconds = now, used
        self.stood_still = now - self.idle_since
        return self.stood_still > self.patience()

    def patience(self) -> float:
        """Return how many seconds the ranks may stand still."""
        asked_for = self.job["standstill"] * (BUSY_PATIENCE if self.machine_is_busy else 1)
        return max(asked_for, min(self.idle_since - self.began, TUNER_SECONDS))

    def some_rank_works(self) -> bool:
        """Tell whether a rank's main thread computes, or waits for a disk or for a free core.

        An import from a slow disk on a busy machine uses hardly any processor time.
        """
        for rank in range(self.job["np"]):
            started = self.folder.read_state(rank, "started")
            with suppress(psutil.Error):
                if started and psutil.Process(started["pid"]).status() in _WORKING:
                    return True
        return False

    @staticmethod
    def cpu_seconds(process: psutil.Process) -> float:
        """Return the processor time of a process so far; 0 for one that has gone."""
        try:
            times = process.cpu_times()
        except psutil.Error:
            return 0.0
        return times.user + times.system

    @staticmethod
    def descendants() -> list[psutil.Process]:
        """Every process of this run, also those that changed their session or lost their parent."""
        return psutil.Process().children(recursive=True)

    def ask_for_stacks(self) -> None:
        """Have every rank that still runs write where it is into its stack file."""
        for rank in range(self.job["np"]):
            started = self.folder.read_state(rank, "started")
            if started is None or self.folder.read_state(rank, "ended") is not None:
                continue
            try:
                os.kill(started["pid"], signal.SIGUSR1)
            except ProcessLookupError:
                continue

    def end_everything(self) -> None:
        """End all processes of the run, politely and then surely, and emit the last of it."""
        # At its end stdin is always ready, and would keep the ranks' last output from being read.
        self.selector.unregister(sys.stdin)
        if self.reason in ("time limit", "standstill", "interrupted"):
            self.ask_for_stacks()
            time.sleep(0.3)
        left = self.descendants()
        for process in left:
            self.send(process, signal.SIGTERM)
        _, stubborn = psutil.wait_procs(left, timeout=TERMINATE_SECONDS)
        for process in stubborn + self.descendants():
            self.send(process, signal.SIGKILL)
        psutil.wait_procs(self.descendants(), timeout=TERMINATE_SECONDS)
        while any(key.data for key in self.selector.get_map().values()):
            if not self.selector.select(0):
                break
            self.forward_output()
        self.forward_metrics()
        self.collect_statuses(by_launcher=True)
        emit("ended", reason=self.reason, stood_still=self.stood_still)

    @staticmethod
    def send(process: psutil.Process, number: int) -> None:
        """Send a signal to a process, unless it has gone."""
        with suppress(psutil.Error):
            process.send_signal(number)


def read_job() -> dict[str, Any]:
    """Read the job from stdin, and work where, as and on the cores that it was asked for on."""
    job = json.loads(sys.stdin.buffer.raw.readline())
    os.chdir(job["cwd"])
    os.sched_setaffinity(0, job["cores"])
    os.environ.clear()
    os.environ.update(job["environ"])
    tempfile.tempdir = None  # it may have been chosen before
    return job


def main() -> None:
    """Run the job that stands on the first line of stdin."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    job = read_job()
    supervisor = Supervisor(job)
    supervisor.follow()
    if supervisor.reason == "interrupted":
        # Nobody is left who would read the records, or remove them.
        shutil.rmtree(job["folder"], ignore_errors=True)


if __name__ == "__main__":
    main()
