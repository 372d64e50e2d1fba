"""Where a process stands among its peers, before Horovod is initialized, and its cores there."""

import os
from dataclasses import dataclass

from hvdcourse.machine.cores import split_cores

# Says to this process and those that it starts that it has its share of the cores.
SPLIT_VARIABLE = "HVDCOURSE_CORES_ARE_SPLIT"
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
        numbers = {}
        for field, names in _VARIABLES.items():
            value = next((os.environ[name] for name in names if name in os.environ), None)
            numbers[field] = int(value) if value is not None and value.isdigit() else _ALONE[field]
        return cls(**numbers)


def take_share_of_cores() -> list[int]:
    """Keep a rank to its share of this machine's cores, and return the cores of this process.

    It is done once, however often it is asked for. A process that neither Horovod's launcher nor
    Open MPI's has started keeps all of its cores; Slurm shares them out itself.
    """
    launched = any(name in os.environ for name in _VARIABLES["local_size"][:2])
    if not launched or SPLIT_VARIABLE in os.environ:
        return sorted(os.sched_getaffinity(0))
    os.environ[SPLIT_VARIABLE] = "done"
    place = Place.from_environment()
    return split_cores(place.local_rank, place.local_size)
