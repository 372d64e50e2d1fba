"""Starts the ranks of a run: by the command line of its job, or quickly, for checks and studies.

The quick start does what ``horovodrun`` does on one machine, without asking first what Horovod was
built with: over Gloo it starts every rank itself, over MPI it calls mpirun.
"""

import os
import subprocess
import sys
from itertools import chain
from typing import Any

from hvdcourse.launch.command_line import python_path
from hvdcourse.launch.forked_rank import ForkedRank
from hvdcourse.launch.job import Job
from hvdcourse.launch.rank_output import OutputReader
from hvdcourse.machine.environment import end_with_parent, tool
from hvdcourse.rank.place import SPLIT_VARIABLE
from hvdcourse.rank.run_folder import RunFolder
from hvdcourse.rank.variables import RUN_FOLDER_VARIABLE

Process = subprocess.Popen[bytes] | ForkedRank
# By rank; horovodrun or mpirun, which stand for all ranks, have the key None.
Processes = dict[int | None, Process]
Started = tuple[Processes, list[OutputReader]]
_STREAMS = ("stdout", "stderr")
_PIPES: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
}
# All ranks are on this machine, also inside of a Slurm job. A rank that waits over MPI asks again
# and again whether a message has come: mpi_yield_when_idle has it let others go first, among them
# the one that it waits for: https://www.open-mpi.org/faq/?category=running#oversubscribing
_LOCAL_MPI = {
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_oob_tcp_if_include": "lo",
    "OMPI_MCA_ras": "^slurm",
    "OMPI_MCA_plm": "isolated",
}


def start_ranks(job: Job) -> Started:
    """Start the ranks; return their processes, or the launcher's, and readers of what they print.

    Raises:
        OSError: the launcher cannot be started.
    """
    if job.command:
        environment = rank_environment(job)
        environment["PYTHONPATH"] = python_path(environment)
        return start_launcher(job, job.command, environment)
    if job.backend == "gloo":
        return start_gloo_ranks(job)
    return start_launcher(job, [*mpirun_command(job.np), *rank_command(job)], rank_environment(job))


def rank_command(job: Job) -> list[str]:
    """Return the command that one rank runs."""
    return [sys.executable, "-m", "hvdcourse.rank.main", job.script, *job.arguments]


def rank_environment(job: Job) -> dict[str, str]:
    """Return the environment that all ranks of the job share."""
    # What TensorFlow and horovodrun log below errors would bury what the ranks say.
    defaults = {"TF_CPP_MIN_LOG_LEVEL": "2"}
    ours = {"PYTHONUNBUFFERED": "1", RUN_FOLDER_VARIABLE: job.folder}
    if job.backend == "mpi":
        # MPI polls, so that waiting ranks look busy. Horovod's own stall check finds them.
        ours["HOROVOD_STALL_CHECK_TIME_SECONDS"] = str(max(1, int(job.standstill / 2)))
        ours["HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"] = str(max(2, int(job.standstill)))
        ours |= _LOCAL_MPI
    else:
        # On a busy machine one rank may import TensorFlow half a minute later than another.
        ours["HOROVOD_GLOO_TIMEOUT_SECONDS"] = "300"
    inherited = {name: value for name, value in os.environ.items() if name != SPLIT_VARIABLE}
    return {**defaults, **inherited, **ours, **job.environment}


def readers_of(process: Process, rank: int | None) -> list[OutputReader]:
    """Return readers of what a process prints."""
    pipes = zip((process.stdout, process.stderr), _STREAMS, strict=True)
    return [OutputReader(pipe, rank, stream) for pipe, stream in pipes if pipe is not None]


def start_gloo_ranks(job: Job) -> Started:
    """Start every rank with the variables that ``horovodrun --gloo`` would give it.

    The ranks meet at Horovod's own rendezvous server, which lives in this process.
    """
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.gloo_run import create_slot_env_vars

    from hvdcourse.launch.rendezvous import start_rendezvous

    hosts = ",".join(f"host{number}:{ranks}" for number, ranks in enumerate(job.hosts or [job.np]))
    slots = get_host_assignments(parse_hosts(hosts), job.np)
    server, port = start_rendezvous()
    server.init(slots)
    environment = {
        **rank_environment(job),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1",
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        "HOROVOD_GLOO_IFACE": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
    }
    processes: Processes = {
        slot.rank: start_rank(job, {**environment, **create_slot_env_vars(slot)}) for slot in slots
    }
    readers = (readers_of(process, rank) for rank, process in processes.items())
    return processes, list(chain.from_iterable(readers))


def start_rank(job: Job, environment: dict[str, str]) -> Process:
    """Start one rank in a session of its own: forked where TensorFlow is imported, else anew."""
    if "tensorflow" in sys.modules:
        return ForkedRank([job.script, *job.arguments], environment)
    command = rank_command(job)
    return subprocess.Popen(command, env=environment, start_new_session=True, **_PIPES)


def mpirun_command(np: int) -> list[str]:
    """Return the mpirun line for ``np`` ranks on this machine, without their program.

    --oversubscribe allows more ranks than cores, and --bind-to none leaves the choice of cores to
    the ranks themselves.
    """
    return [
        tool("mpirun"),
        *("--allow-run-as-root", "--oversubscribe", "--bind-to", "none"),
        *("--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp", "-np", str(np)),
    ]


def start_launcher(job: Job, command: list[str], environment: dict[str, str]) -> Started:
    """Start horovodrun or mpirun, which starts the ranks.

    What ranks print through them loses its lines: two ranks' parts of lines get mixed. So each rank
    prints into pipes of its own.
    """
    folder = RunFolder(job.folder)
    readers = [open_pipe(folder, rank, name) for rank in range(job.np) for name in _STREAMS]
    process = subprocess.Popen(command, env=environment, preexec_fn=end_with_parent, **_PIPES)
    return {None: process}, [*readers, *readers_of(process, None)]


def open_pipe(folder: RunFolder, rank: int, stream: str) -> OutputReader:
    """Make the pipe that a rank prints into, and return its reader."""
    path = folder.pipe(rank, stream)
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    return OutputReader(os.fdopen(descriptor, "rb", buffering=0), rank, stream)
