"""Where a process stands among its peers, and which processor cores are its own."""

import os
from dataclasses import dataclass

from hvdcourse.container import cores_allowed
from hvdcourse.gpus import visible_gpus

# In this order: Horovod's own variables, then those of Open MPI's launcher, then Slurm's.
_VARIABLES = {
    "rank": ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"),
    "size": ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"),
    "local_rank": ("HOROVOD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"),
    "local_size": ("HOROVOD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"),
}
_ALONE = {"rank": 0, "size": 1, "local_rank": 0, "local_size": 1}


@dataclass(frozen=True)
class Place:
    """The place that the launcher gave to this process, known before ``hvd.init()``."""

    rank: int
    size: int
    local_rank: int
    local_size: int

    @classmethod
    def from_environment(cls) -> "Place":
        """Read the launcher's variables; a process without a launcher is rank 0 of 1."""
        found = {}
        for field, names in _VARIABLES.items():
            value = next((os.environ[name] for name in names if name in os.environ), None)
            found[field] = int(value) if value is not None and value.isdigit() else _ALONE[field]
        return cls(**found)


def share_of_cores(cores: list[int], local_rank: int, local_size: int) -> list[int]:
    """Return the cores of one of ``local_size`` processes: equal, disjoint shares where possible.

    With more processes than cores, each process gets one core, handed out in turn.
    """
    if local_size >= len(cores):
        return [cores[local_rank % len(cores)]]
    start = local_rank * len(cores) // local_size
    end = (local_rank + 1) * len(cores) // local_size
    return cores[start:end]


def usable_cores() -> int:
    """Return the time of how many cores this process may use."""
    seen = len(os.sched_getaffinity(0))
    return min(seen, cores_allowed() or seen)


def split_cores(local_rank: int, local_size: int) -> list[int]:
    """Keep this process to its share of the machine's cores and return them.

    Every TensorFlow process otherwise starts one thread a core, so that ranks on one machine
    fight for the same cores. Nothing is done on a machine with NVIDIA GPUs (there the GPU does the
    work, and drivers choose cores near it), or where ``HVDCOURSE_SPLIT_CORES=0`` asks for the
    unsplit behaviour. A process that is alone keeps all cores. In a container that is allowed less
    time than that of the cores it sees, no core is its own: only the threads are fewer.

    Call it before TensorFlow runs its first operation: later its threads exist already.
    """
    cores, usable = sorted(os.sched_getaffinity(0)), usable_cores()
    wanted = os.environ.get("HVDCOURSE_SPLIT_CORES", "1") != "0"
    if not wanted or visible_gpus() or (local_size == 1 and usable == len(cores)):
        return cores
    threads = max(1, usable // local_size)
    if usable == len(cores):
        cores = share_of_cores(cores, local_rank, local_size)
        os.sched_setaffinity(0, cores)
        threads = len(cores)
    for variable in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
        os.environ[variable] = str(threads)
    return cores
