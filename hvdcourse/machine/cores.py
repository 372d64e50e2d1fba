"""Which of the machine's processor cores are a process's own."""

import os
from pathlib import Path

from hvdcourse.machine.container import cores_allowed
from hvdcourse.machine.gpus import visible_gpus

# Where Linux tells of each core which cores are hardware threads of the same.
PROCESSORS = Path("/sys/devices/system/cpu")


def share_of_cores(cores: list[int], local_rank: int, local_size: int) -> list[int]:
    """Return the cores of one of ``local_size`` processes: equal, disjoint shares where possible.

    With more processes than cores, each process gets one core, handed out in turn.
    """
    if local_size >= len(cores):
        return [cores[local_rank % len(cores)]]
    start = local_rank * len(cores) // local_size
    end = (local_rank + 1) * len(cores) // local_size
    return cores[start:end]


def pick_cores(count: int) -> list[int]:
    """Return ``count`` of the cores that this process may use, no two of one core where possible.

    Linux counts the hardware threads of a core as cores; two of them share what computes.
    """
    picked, seconds = list[tuple[int, str]](), list[tuple[int, str]]()
    for core in sorted(os.sched_getaffinity(0)):
        siblings = PROCESSORS / f"cpu{core}" / "topology" / "thread_siblings_list"
        of_core = siblings.read_text() if siblings.exists() else str(core)
        (seconds if of_core in (known for _, known in picked) else picked).append((core, of_core))
    return sorted(core for core, _ in (picked + seconds)[:count])


def usable_cores() -> int:
    """Return the time of how many cores this process may use."""
    allotted = len(os.sched_getaffinity(0))
    return min(allotted, cores_allowed() or allotted)


def split_cores(local_rank: int, local_size: int) -> list[int]:
    """Keep this process to its share of the machine's cores and return them.

    Every TensorFlow process otherwise starts one thread a core, so that ranks on one machine
    fight for the same cores. Nothing is done on a machine with NVIDIA GPUs (there the GPU does the
    work, and drivers choose cores near it), or where ``HVDCOURSE_SPLIT_CORES=0`` asks for the
    unsplit behavior. A process that is alone keeps all cores. In a container that is allowed less
    time than that of the cores it sees, no core is its own: only the threads are fewer.

    Call it before TensorFlow runs its first operation: later its threads exist already.
    """
    cores, usable = sorted(os.sched_getaffinity(0)), usable_cores()
    unsplit = os.environ.get("HVDCOURSE_SPLIT_CORES", "1") == "0"
    if unsplit or visible_gpus() or (local_size == 1 and usable == len(cores)):
        return cores
    threads = max(1, usable // local_size)
    if usable == len(cores):
        cores = share_of_cores(cores, local_rank, local_size)
        os.sched_setaffinity(0, cores)
        threads = len(cores)
    for variable in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
        os.environ[variable] = str(threads)
    return cores
