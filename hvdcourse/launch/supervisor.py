"""The process that starts the ranks of one run, watches them, and leaves none behind.

``process.start_process`` calls its ``main`` with the job and a connection, into which it sends the
events of the run. It ends the run when a rank fails, at the time limit, when all ranks stand still,
and when the other end of the connection closes: the process that wanted the run has then been
interrupted, or is dead.
"""

import ctypes
import os
import selectors
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from hvdcourse.launch.job import Caller, Event, Job, MetricsRow, OutputLine, ProcessEnd, RunEnd
from hvdcourse.launch.rank_output import OutputReader
from hvdcourse.launch.ranks import start_ranks
from hvdcourse.launch.standstill import StandstillWatch
from hvdcourse.machine.processes import end_all
from hvdcourse.rank.run_folder import RunFolder

PR_SET_CHILD_SUBREAPER = 36
LOG = "supervisor.log"
TICK_SECONDS = 0.1
# After the first rank failed, the others have this long to end by themselves.
GRACE_SECONDS = 3.0
TERMINATE_SECONDS = 2.0
_ENDED_BY_FORCE = ("time limit", "standstill", "interrupted")


class Supervisor:
    """Starts the processes of one job and follows them to their end."""

    def __init__(self, job: Job, connection: Connection):
        self.job, self.connection = job, connection
        self.folder = RunFolder(job.folder)
        self.reason: str | None = None
        self.stop_asked = False
        self.deadline = time.monotonic() + job.timeout
        self.grace_ends: float | None = None
        self.watch = StandstillWatch(job.np, job.standstill, self.folder, self.descendants)
        self.metrics = self.folder.lines_as_they_come(0, "metrics")
        self.processes, readers = start_ranks(job)
        self.statuses: dict[int | None, int] = {}
        self.selector = selectors.DefaultSelector()
        for reader in readers:
            self.selector.register(reader, selectors.EVENT_READ, reader)
        self.selector.register(connection, selectors.EVENT_READ, None)

    def follow(self) -> None:
        """Forward output and metrics until there is a reason to end the run, then end it."""
        while self.reason is None:
            is_wanted = self.forward_output() and not self.stop_asked
            self.forward_metrics()
            self.collect_statuses()
            self.reason = self.reason_to_end() if is_wanted else "interrupted"
        self.end_everything()

    def stop(self, *_: object) -> None:
        """End the run at the next look; a signal handler."""
        self.stop_asked = True

    def emit(self, event: Event) -> None:
        """Send one event; a reader that has gone away is noticed by the selector instead."""
        with suppress(OSError):
            self.connection.send(event)

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
        return "standstill" if self.watch.stands_still() else None

    def forward_output(self) -> bool:
        """Send what the ranks have printed; return False once nobody wants the run any more."""
        for key, _ in self.selector.select(TICK_SECONDS):
            if key.data is None:
                return False  # The caller never sends anything: its end was closed.
            self.forward_lines(key.data)
        return True

    def forward_lines(self, reader: OutputReader) -> None:
        """Send the lines that have arrived in one pipe."""
        for line in reader.read():
            self.emit(OutputLine(rank=reader.rank, stream=reader.stream, text=line))
            self.watch.note_output()
        if reader.closed:
            self.selector.unregister(reader)

    def forward_metrics(self) -> None:
        """Send what rank 0 has reported of its training since the last look."""
        for values in self.metrics.read():
            self.emit(MetricsRow(values=values))

    def collect_statuses(self, by_supervisor: bool = False) -> None:
        """Send the exit status of every process that has ended since the last look."""
        for rank, process in self.processes.items():
            if rank not in self.statuses and (status := process.poll()) is not None:
                self.statuses[rank] = status
                end = ProcessEnd(
                    rank=rank, status=status, time=time.time(), by_supervisor=by_supervisor
                )
                self.emit(end)

    def some_rank_failed(self) -> bool:
        """Tell whether a process or a rank has ended badly."""
        if any(self.statuses.values()):
            return True
        ended = (self.folder.read_state(rank, "ended") for rank in range(self.job.np))
        return any(state and state["status"] != 0 for state in ended)

    @staticmethod
    def descendants() -> list[psutil.Process]:
        """Every process of this run, also those that changed their session or lost their parent."""
        return psutil.Process().children(recursive=True)

    def ask_for_stacks(self) -> None:
        """Have every rank that still runs write where it is into its stack file."""
        for rank in range(self.job.np):
            started = self.folder.read_state(rank, "started")
            if started is None or self.folder.read_state(rank, "ended") is not None:
                continue
            with suppress(ProcessLookupError):
                os.kill(started["pid"], signal.SIGUSR1)

    def end_everything(self) -> None:
        """End all processes of the run, politely and then surely, and send the last of it."""
        assert self.reason is not None
        # At its end the connection is always ready, and would keep the last output from being read.
        self.selector.unregister(self.connection)
        if self.reason in _ENDED_BY_FORCE:
            self.ask_for_stacks()
            self.folder.wait_for_stacks(range(self.job.np))
        end_all(self.descendants, grace=TERMINATE_SECONDS)
        while self.selector.get_map() and self.selector.select(0):
            self.forward_output()
        self.forward_metrics()
        self.collect_statuses(by_supervisor=True)
        self.emit(RunEnd(reason=self.reason, stood_still=self.watch.stood_still))


def become_supervisor(job: Job, caller: Caller) -> None:
    """Work where, as and on the cores that the caller does, and survive what ends the caller.

    Where the job has cores of its own, these take the place of the caller's.
    """
    os.setsid()
    with open(os.devnull) as nothing, (Path(job.folder) / LOG).open("w") as log:
        for standard, file in enumerate((nothing, log, log)):
            os.dup2(file.fileno(), standard)
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1)
    os.chdir(caller.folder)
    os.sched_setaffinity(0, job.cores or caller.cores)
    os.environ.clear()
    os.environ.update(caller.environment)
    tempfile.tempdir = None  # it may have been chosen before


def main(job: Job, caller: Caller, connection: Connection) -> None:
    """Run the job, and send its events into the connection."""
    if connection.poll():
        return  # The caller, who never sends anything, was gone before this process had begun.
    os.mkdir(job.folder, 0o700)
    # The connection tells when the caller is interrupted.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    become_supervisor(job, caller)
    supervisor = Supervisor(job, connection)
    # multiprocessing sends it at the caller's end, and then waits for this process.
    signal.signal(signal.SIGTERM, supervisor.stop)
    supervisor.follow()
    if supervisor.reason == "interrupted":
        # Nobody is left who would read the records, or remove them.
        shutil.rmtree(job.folder, ignore_errors=True)
