"""Starts the ranks of a run: one process each over Gloo, or mpirun, which starts them over MPI."""

import ctypes
import os
import signal
import subprocess
import sys
from typing import Any

from hvdcourse.environment import PR_SET_PDEATHSIG, tool
from hvdcourse.forked_rank import ForkedRank
from hvdcourse.rank_output import OutputReader
from hvdcourse.run_folder import VARIABLE, RunFolder

# By rank; mpirun, which stands for all ranks, has the key None.
Processes = dict[int | None, subprocess.Popen | ForkedRank]

_STREAMS = ("stdout", "stderr")
_PIPES = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
}


def rank_command(job: dict[str, Any]) -> list[str]:
    """Return the command that one rank runs."""
    return [sys.executable, "-m", "hvdcourse.rank_main", job["script"], *job["arguments"]]


def rank_environment(job: dict[str, Any]) -> dict[str, str]:
    """Return the environment that all ranks of the job share."""
    mine = {"PYTHONUNBUFFERED": "1", VARIABLE: job["folder"]}
    return {**os.environ, **mine, **job["environment"]}


def readers_of(process: subprocess.Popen | ForkedRank, rank: int | None) -> list[OutputReader]:
    """Return readers of what a process prints."""
    return [OutputReader(getattr(process, stream), rank, stream) for stream in _STREAMS]


def start_rank(job: dict[str, Any], environment: dict[str, str]) -> subprocess.Popen | ForkedRank:
    """Start one rank in a session of its own: forked where TensorFlow is imported, else anew."""
    if "tensorflow" in sys.modules:
        return ForkedRank(job, environment)
    command = rank_command(job)
    return subprocess.Popen(command, env=environment, start_new_session=True, **_PIPES)


def start_rendezvous(np: int) -> tuple[Any, int]:
    """Start Horovod's server through which Gloo's ranks meet; return it and its port."""
    from horovod.runner.http.http_server import RendezvousHTTPServer, RendezvousServer

    # Python's own choice is 5, and whoever asks beside them tries again after 1 to 7 seconds.
    RendezvousHTTPServer.request_queue_size = max(5, 2 * np)
    server = RendezvousServer()
    return server, server.start()


def start_gloo_ranks(job: dict[str, Any]) -> tuple[Processes, list[OutputReader]]:
    """Start every rank with the variables that ``horovodrun --gloo`` would give it.

    The ranks meet at Horovod's own rendezvous server, which lives in this process.
    """
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.gloo_run import create_slot_env_vars

    slots = get_host_assignments(parse_hosts(f"localhost:{job['np']}"), job["np"])
    server, port = start_rendezvous(job["np"])
    server.init(slots)
    shared = {
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1",
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        "HOROVOD_GLOO_IFACE": "lo",
    }
    # On a busy machine one rank may import TensorFlow half a minute later than another.
    environment = {"HOROVOD_GLOO_TIMEOUT_SECONDS": "300", **rank_environment(job), **shared}
    processes: Processes = {
        slot.rank: start_rank(job, {**environment, **create_slot_env_vars(slot)}) for slot in slots
    }
    readers = [one for rank, process in processes.items() for one in readers_of(process, rank)]
    return processes, readers


def mpirun_command(np: int) -> list[str]:
    """Return the mpirun line, without the program, for ``np`` ranks on this machine.

    --oversubscribe allows more ranks than cores, and --bind-to none leaves the choice of cores to
    the ranks themselves. A rank that waits asks again and again whether a message has come:
    mpi_yield_when_idle has it let others go first, among them the one that it waits for.
    See https://www.open-mpi.org/faq/?category=running#oversubscribing
    """
    return [
        tool("mpirun"),
        *("--allow-run-as-root", "--oversubscribe", "--bind-to", "none"),
        *("--mca", "mpi_yield_when_idle", "1"),
        *("--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp"),
        *("--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"),
        # Inside of a Slurm job, too, the ranks stay on this machine.
        *("--mca", "ras", "^slurm", "--mca", "plm", "^slurm"),
        *("-np", str(np)),
    ]


def open_pipe(folder: RunFolder, rank: int, stream: str) -> OutputReader:
    """Make the pipe that a rank prints into, and return its reader.

    What goes through mpirun instead loses its lines: two ranks' parts of lines get mixed.
    """
    path = folder.pipe(rank, stream)
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    return OutputReader(os.fdopen(descriptor, "rb", buffering=0), rank, stream)


def start_mpi_ranks(job: dict[str, Any]) -> tuple[Processes, list[OutputReader]]:
    """Start mpirun, which starts the ranks."""

    def end_with_supervisor() -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    environment = {
        **rank_environment(job),
        "HOROVOD_CONTROLLER": "mpi",
        "HOROVOD_CPU_OPERATIONS": "mpi",
        # MPI polls, so that waiting ranks look busy. Horovod's own stall check finds them.
        "HOROVOD_STALL_CHECK_TIME_SECONDS": str(max(1, int(job["standstill"] / 2))),
        "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": str(max(2, int(job["standstill"]))),
    }
    folder = RunFolder(job["folder"])
    readers = [open_pipe(folder, rank, name) for rank in range(job["np"]) for name in _STREAMS]
    command = mpirun_command(job["np"]) + rank_command(job)
    process = subprocess.Popen(command, env=environment, preexec_fn=end_with_supervisor, **_PIPES)
    return {None: process}, [*readers, *readers_of(process, None)]
