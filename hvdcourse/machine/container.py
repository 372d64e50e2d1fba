"""What a container may use of its machine: the limits of its control group.

A container that is allowed the time of 2 cores on a machine of 64 still sees all 64. The files are
those of version 2, https://docs.kernel.org/admin-guide/cgroup-v2.html, and of version 1.
"""

import math
from pathlib import Path

GROUP = Path("/sys/fs/cgroup")


def numbers_in(*names: str) -> list[int]:
    """Return the whole numbers in these files; none where one is missing, or sets no limit."""
    try:
        words = " ".join((GROUP / name).read_text() for name in names).split()
        return [int(word) for word in words]
    except (OSError, ValueError):
        return []


def cores_allowed() -> int | None:
    """Return the time of how many cores is allowed, rounded up; None where there is no limit."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        match numbers_in(*names):
            case [quota, period] if quota > 0:
                return math.ceil(quota / period)
    return None


def bytes_allowed() -> int | None:
    """Return how much memory is allowed, in bytes; None where there is no limit."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        match numbers_in(name):
            case [limit]:
                return limit
    return None
