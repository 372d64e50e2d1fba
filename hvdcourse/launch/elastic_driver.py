"""Runs Horovod's elastic launcher, and on the way kills workers and adds hosts as planned.

``hvdcourse.launch.elastic`` starts it as the only rank of a run, so that a time limit, Ctrl-C and a
crash end the launcher and its workers as they end any other run.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from hvdcourse.launch.command_line import python_path
from hvdcourse.launch.job import Disturbance
from hvdcourse.machine.cores import usable_cores
from hvdcourse.machine.environment import end_with_parent
from hvdcourse.rank.elastic_reports import ranks_that_ended, read_reports, waiting_workers
from hvdcourse.rank.reports import record
from hvdcourse.rank.run_folder import RunFolder

POLL_SECONDS = 0.05


class Disturber(threading.Thread):
    """Carries out a plan: each disturbance once, when the job has ended its epoch."""

    def __init__(self, plan: list[Disturbance], hosts_file: Path, folder: RunFolder):
        super().__init__(daemon=True)
        self.plan, self.hosts_file, self.folder = plan, hosts_file, folder

    def run(self) -> None:
        """Wait for the epoch of each, and then do what it says."""
        for disturbance in self.plan:
            while not self.is_due(disturbance):
                time.sleep(POLL_SECONDS)
            if disturbance.kill:
                self.kill(disturbance.kill)
            if disturbance.add:
                self.add(disturbance.add)

    def is_due(self, disturbance: Disturbance) -> bool:
        """Tell whether its epoch was ended; for a kill, whether all workers wait for it."""
        reports = read_reports(self.folder)
        if disturbance.kill:
            return bool(waiting_workers(reports))
        return bool(ranks_that_ended(reports, disturbance.after_epoch))

    def kill(self, ranks: Sequence[int]) -> None:
        """Kill the workers that have these ranks, as a lost machine would: without a warning."""
        workers = waiting_workers(read_reports(self.folder))
        pids = [workers[rank] for rank in ranks]
        moment = time.time()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        record("killed", {"ranks": ranks, "pids": pids, "time": moment})

    def add(self, host: str) -> None:
        """Let the discovery script name one host more, with one slot."""
        with self.hosts_file.open("a") as file:
            file.write(f"{host}:1\n")
        record("added", {"host": host, "time": time.time()})


def main() -> None:
    """Start the job that the command line describes in JSON, and end as it ends."""
    job = json.loads(sys.argv[1])
    folder = RunFolder.of_this_process()
    if folder is None:
        sys.exit("This process is started by run_elastic; by hand, type the horovodrun line.")
    # What this process knows of its own place is not the workers' place.
    for name in [name for name in os.environ if name.startswith("HOROVOD_")]:
        del os.environ[name]
    # All hosts are this machine: each worker gets its share of the cores.
    threads = str(max(1, usable_cores() // job["np"]))
    os.environ |= {"TF_NUM_INTRAOP_THREADS": threads, "TF_NUM_INTEROP_THREADS": threads}
    # A killed worker cannot remove what TensorFlow has written for it.
    os.environ["TMPDIR"] = str(folder.temporary_files())
    plan = [Disturbance(**disturbance) for disturbance in job["plan"]]
    for disturbance in filter(lambda disturbance: disturbance.kill, plan):
        kill = {"after_epoch": disturbance.after_epoch, "ranks": disturbance.kill}
        record("planned kill", kill)  # The workers wait for it, when it is due.
    Disturber(plan, Path(job["hosts_file"]), folder).start()
    os.environ["PYTHONPATH"] = python_path(os.environ)
    sys.exit(subprocess.run(job["command"], preexec_fn=end_with_parent).returncode)


if __name__ == "__main__":
    main()
