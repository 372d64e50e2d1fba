"""What this machine's kernel tells of its processors, caches and network links.

Linux writes it under ``/sys``: https://docs.kernel.org/admin-guide/cputopology.html and
https://docs.kernel.org/admin-guide/abi-testing.html. A container or a virtual machine often hides
some of it, or shows what its host made up. What is not told is None here, and never guessed.
"""

import json
import os
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

SYS = Path("/sys")
NOT_TOLD = "not told"


@dataclass(frozen=True)
class Thread:
    """A hardware thread: what Linux counts as a CPU, and where it belongs.

    ``core`` is the lowest thread of the same core, since cores have no number of their own that is
    unique in a machine. What is not told is None.
    """

    number: int
    core: int | None
    socket: int | None
    numa_node: int | None


@dataclass(frozen=True)
class Cache:
    """One cache, its size in bytes, and the hardware threads that share it."""

    level: int
    kind: str
    size: int
    threads: tuple[int, ...]

    @property
    def name(self) -> str:
        """Its usual short name, such as L1d or L3."""
        return f"L{self.level}{ {'Data': 'd', 'Instruction': 'i'}.get(self.kind, '') }"


@dataclass(frozen=True)
class NetworkLink:
    """A network interface that is up, and its speed in Mbit/s."""

    name: str
    megabits: float | None


@dataclass(frozen=True)
class Machine:
    """All that is told; ``allowed`` are the hardware threads that this process may use."""

    processor: str | None
    hypervisor: str | None
    threads: tuple[Thread, ...]
    allowed: tuple[int, ...]
    caches: tuple[Cache, ...]
    links: tuple[NetworkLink, ...]

    @property
    def cores(self) -> list[int]:
        """The cores, each by its lowest hardware thread; empty if they are not told."""
        return sorted({one.core for one in self.threads if one.core is not None})

    @property
    def sockets(self) -> list[int]:
        """The sockets' numbers; empty if they are not told."""
        return sorted({one.socket for one in self.threads if one.socket is not None})

    @property
    def numa_nodes(self) -> list[int]:
        """The numbers of the NUMA nodes; empty if they are not told."""
        return sorted({one.numa_node for one in self.threads if one.numa_node is not None})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, with the counts."""
        counts = {
            "sockets": len(self.sockets) or None,
            "numa_nodes": len(self.numa_nodes) or None,
            "cores": len(self.cores) or None,
            "hardware_threads": len(self.threads) or None,
        }
        return {**asdict(self), "counts": counts}

    def print(self, console: Console | None = None) -> None:
        """Print what is told as a table."""
        table = Table("", "this machine", show_header=False)
        for name, found in self.rows():
            table.add_row(name, found)
        (console or Console()).print(table)

    def rows(self) -> list[tuple[str, str]]:
        """Return what is told as lines of a table: a name, and what was found."""
        processor = self.processor or NOT_TOLD
        if self.hypervisor:
            processor += f", in a virtual machine ({self.hypervisor})"
        counts = {name: str(n or NOT_TOLD) for name, n in self.to_dict()["counts"].items()}
        allowed = len(self.allowed)
        rows = [
            ("processor", processor),
            *(
                (name.replace("_", " ").replace("numa", "NUMA"), found)
                for name, found in counts.items()
            ),
            ("of which this process may use", f"{allowed}: {shorten(self.allowed)}"),
        ]
        rows += [(f"{name} cache", found) for name, found in self.cache_rows()]
        if not self.caches:
            rows.append(("caches", NOT_TOLD))
        rows += [(f"network link {one.name}", show_speed(one.megabits)) for one in self.links]
        return rows

    def cache_rows(self) -> list[tuple[str, str]]:
        """Return each kind of cache: its name, and how many of which size there are for whom."""
        kinds: dict[tuple[str, int, int], list[Cache]] = {}
        for cache in self.caches:
            kinds.setdefault((cache.name, cache.size, len(self.users(cache))), []).append(cache)
        what = "core" if self.cores else "hardware thread"
        rows = []
        for (name, size, sharing), same in kinds.items():
            whom = f"each for one {what}" if sharing == 1 else f"each shared by {sharing} {what}s"
            rows.append((name, f"{len(same)} of {show_size(size)}, {whom}"))
        return rows

    def users(self, cache: Cache) -> list[int]:
        """Return the cores that share a cache, or its hardware threads if cores are not told."""
        cores = {one.core for one in self.threads if one.number in cache.threads}
        return sorted(core for core in cores if core is not None) or list(cache.threads)


def read_machine(sys: Path = SYS) -> Machine:
    """Read what this machine's kernel tells; a fixture's folder may stand for ``/sys``."""
    folders = (sys / "devices/system/cpu").glob("cpu[0-9]*")
    folders = sorted(folders, key=lambda folder: int(folder.name[3:]))
    told = lscpu()
    return Machine(
        processor=told.get("Model name"),
        hypervisor=told.get("Hypervisor vendor"),
        threads=tuple(read_thread(one) for one in folders if _line(one / "online") != "0"),
        allowed=tuple(sorted(os.sched_getaffinity(0))),
        caches=read_caches(folders),
        links=(*read_ethernet(sys / "class/net"), *read_infiniband(sys / "class/infiniband")),
    )


def _line(file: Path) -> str | None:
    """Return a file's only line; None where the kernel has none, or does not let us read it."""
    try:
        return file.read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _number(file: Path) -> int | None:
    """Return the number in a file; None where there is none, or -1, by which Linux says so."""
    line = _line(file) or ""
    return int(line) if line.isdecimal() else None


def read_thread(folder: Path) -> Thread:
    """Read where one hardware thread belongs."""
    number = int(folder.name[3:])
    topology = folder / "topology"
    siblings = expand(_line(topology / "thread_siblings_list"))
    nodes = [int(node.name[4:]) for node in folder.glob("node[0-9]*")]
    socket = _number(topology / "physical_package_id")
    return Thread(number, min(siblings, default=None), socket, min(nodes, default=None))


def read_caches(folders: list[Path]) -> tuple[Cache, ...]:
    """Read each cache once, though every thread that shares it lists it; smallest level first."""
    found = set()
    for folder in folders:
        for index in folder.glob("cache/index[0-9]*"):
            level, kind = _number(index / "level"), _line(index / "type")
            size = parse_size(_line(index / "size"))
            threads = expand(_line(index / "shared_cpu_list"))
            if level and kind and size and threads:
                found.add(Cache(level, kind, size, threads))
    return tuple(sorted(found, key=lambda cache: (cache.level, cache.kind, cache.threads)))


def read_ethernet(folder: Path) -> list[NetworkLink]:
    """Read the interfaces that are not down; those of virtual machines often have no speed."""
    links = []
    for interface in sorted(folder.glob("*")):
        state = _line(interface / "operstate")
        if state not in (None, "down", "lowerlayerdown", "notpresent"):
            links.append(NetworkLink(interface.name, _number(interface / "speed") or None))
    return links


def read_infiniband(folder: Path) -> list[NetworkLink]:
    """Read the ports of InfiniBand adapters, whose rate stands there as ``100 Gb/sec (4X EDR)``."""
    links = []
    for port in sorted(folder.glob("*/ports/*")):
        rate = re.match(r"([\d.]+) Gb/sec", _line(port / "rate") or "")
        megabits = float(rate[1]) * 1000 if rate else None
        links.append(NetworkLink(f"{port.parent.parent.name} port {port.name}", megabits))
    return links


def lscpu() -> dict[str, str]:
    """Return the lines of ``lscpu`` by their name; empty if it is not there or does not work."""
    program = shutil.which("lscpu")
    if program is None:
        return {}
    try:
        answer = subprocess.run([program, "--json"], capture_output=True, text=True, timeout=20)
        rows = list(json.loads(answer.stdout)["lscpu"])
        found = {}
        while rows:  # newer versions nest lines
            row = rows.pop(0)
            found[row["field"].rstrip(":")] = row.get("data")
            rows += row.get("children", [])
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {name: data for name, data in found.items() if data and data != "-"}


def expand(text: str | None) -> tuple[int, ...]:
    """Return the numbers that Linux lists as ``0-3,8``; none where it lists nothing."""
    numbers: list[int] = []
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal():
            numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def shorten(numbers: tuple[int, ...]) -> str:
    """Return numbers as Linux lists them: 0, 1, 2, 3 and 8 are ``0-3,8``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def parse_size(text: str | None) -> int | None:
    """Return the bytes that the kernel writes as ``512K``; None where it writes no size."""
    size = re.fullmatch(r"(\d+)([KMG]?)", text or "")
    return int(size[1]) * 1024 ** " KMG".index(size[2] or " ") if size else None


def show_size(size: int) -> str:
    """Return bytes in the largest unit that keeps the number whole or above one."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}" if size % unit == 0 else f"{size / unit:.1f} {name}"
    return f"{size} bytes"


def show_speed(megabits: float | None) -> str:
    """Return a speed given in Mbit/s in words."""
    if megabits is None:
        return f"speed {NOT_TOLD}"
    return f"{megabits / 1000:g} Gbit/s" if megabits >= 1000 else f"{megabits:g} Mbit/s"
