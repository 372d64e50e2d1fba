"""Which way data takes between two GPUs of a machine: the table of ``nvidia-smi topo -m``.

The kinds of path: https://docs.nvidia.com/datacenter/dcgm/latest/reference/command-line-reference/dcgmi/dcgmi-topo.html
The levels of NCCL: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-p2p-level
"""

import re
from dataclasses import dataclass
from itertools import combinations, dropwhile, groupby, permutations, takewhile
from pathlib import Path

from hvdcourse.errors import BadInput

# From best to worst, what lies between two devices.
MEANINGS = {
    "NV#": "# NVLinks, straight to the other GPU or through an NVSwitch; PCIe is not used",
    "PIX": "one PCIe switch at most",
    "PXB": "several PCIe switches, but not the processor",
    "PHB": "a PCIe host bridge, which is part of the processor",
    "NODE": "two PCIe host bridges of one NUMA node, and what joins them",
    "SYS": "the link between NUMA nodes, as a rule from one processor to the other",
}
# How many of these kinds, from the best on, each NCCL_P2P_LEVEL lets two GPUs use directly. NCCL
# has no word for NODE: its PHB means the same NUMA node.
P2P_LEVELS = {"LOC": 0, "NVL": 1, "PIX": 2, "PXB": 3, "PHB": 5, "SYS": 6}
# The most that one GPU has; H100 and B200 have as many.
MOST_NVLINKS = 18

LINK = re.compile(r"NV(?P<nvlinks>[1-9]\d*)|PIX|PXB|PHB|NODE|SYS")


class BadTopology(BadInput):
    """A table that cannot be read; the message says where and what to do."""


@dataclass(frozen=True)
class Link:
    """The path between two devices: its kind, a key of ``MEANINGS``, and its number of NVLinks."""

    kind: str
    nvlinks: int = 0

    def __str__(self) -> str:
        return f"NV{self.nvlinks}" if self.nvlinks else self.kind

    @property
    def distance(self) -> tuple[int, int]:
        """A key to sort by, the best path first."""
        return list(MEANINGS).index(self.kind), -self.nvlinks


@dataclass(frozen=True)
class Topology:
    """The devices of a machine, the link of every two, and the place of each device.

    A place is what the table says of a GPU: ``NUMA node 3``, or ``near CPUs 0-19,40-59`` from a
    driver that names no nodes; it is empty where the table does not say.
    """

    devices: tuple[str, ...]
    links: dict[tuple[str, str], Link]
    places: dict[str, str]

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs, in the order of the table."""
        return tuple(device for device in self.devices if device.startswith("GPU"))

    @property
    def adapters(self) -> tuple[str, ...]:
        """The network adapters, in the order of the table."""
        return tuple(device for device in self.devices if device not in self.gpus)

    @property
    def switched(self) -> bool:
        """Whether the NVLinks must lead to NVSwitches: a row has more of them than a GPU has."""
        return any(self.nvlinks(gpu) > MOST_NVLINKS for gpu in self.gpus)

    def nvlinks(self, gpu: str) -> int:
        """Return the sum of the NVLinks in one GPU's row."""
        return sum(self.links[gpu, other].nvlinks for other in self.gpus if other != gpu)

    def by_link(self) -> dict[Link, list[tuple[str, str]]]:
        """Return the pairs of GPUs of each kind of path, the best kind first."""
        pairs = sorted(combinations(self.gpus, 2), key=lambda pair: self.links[pair].distance)
        return {link: list(group) for link, group in groupby(pairs, key=self.links.__getitem__)}


def levels(topology: Topology) -> dict[str, int]:
    """Return for each ``NCCL_P2P_LEVEL`` how many pairs of GPUs may talk directly at it.

    Whether driver and processor can do it for a pair is what ``nvidia-smi topo -p2p r`` shows.
    """
    kinds = [topology.links[pair].distance[0] for pair in combinations(topology.gpus, 2)]
    return {level: sum(kind < reach for kind in kinds) for level, reach in P2P_LEVELS.items()}


def read_topology(path: str | Path) -> Topology:
    """Read a table from a file; OSError where there is none, BadTopology where it is not one."""
    return parse_topology(Path(path).read_text(), Path(path).name)


def parse_topology(text: str, name: str = "the table") -> Topology:
    """Read the table in what ``nvidia-smi topo -m`` printed; errors call it by ``name``.

    Raises:
        BadTopology: the table is empty, cut off, not symmetric, or has an unknown kind of path.
    """
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()  # the tool underlines the header
    from_header = dropwhile(lambda line: not re.match(r"\s*GPU\d", line), lines)
    table = list(takewhile(lambda line: line.strip() and "Legend" not in line, from_header))
    if not table:
        raise BadTopology(f"{name} is empty: it has no line that begins with GPU0; is there a GPU?")
    devices = tuple(table[0].split("CPU Affinity")[0].split())
    links: dict[tuple[str, str], Link] = {}
    places: dict[str, str] = {}
    for line in table[1:]:
        # The tool leaves unknown affinities blank between its tabs; a pasted table has spaces.
        fields = line.strip(" ").split("\t" if "\t" in line else None)
        device, *cells = (field.strip() for field in fields)
        places[device] = parse_place(cells[len(devices) :])
        for other, cell in zip(devices, cells, strict=False):
            if match := LINK.fullmatch(cell):
                nvlinks = int(match["nvlinks"] or 0)
                links[device, other] = Link("NV#" if nvlinks else cell, nvlinks)
    if places.keys() != set(devices):
        raise BadTopology(f"{name} does not have a row for each of its columns; print it again")
    for device, other in permutations(devices, 2):
        link = links.get((device, other))
        if link is None or link != links.get((other, device)):
            raise BadTopology(
                f"{name} is damaged: row {device}, column {other} and row {other}, column {device} "
                "do not have the same path, or none that is known; print it again"
            )
    return Topology(devices, links, places)


def parse_place(affinities: list[str]) -> str:
    """Return the place of a device from what stands behind its links."""
    processors, node = [*affinities, "", ""][:2]
    if node not in ("", "N/A"):
        return f"NUMA node {node}"
    return "" if processors in ("", "N/A") else f"near CPUs {processors}"
