"""Which way data takes between two GPUs of a machine, and what that means for NCCL.

The kinds of path are those of NVIDIA's management library, which ``nvidia-smi`` and ``dcgmi topo``
show: https://docs.nvidia.com/datacenter/dcgm/latest/reference/command-line-reference/dcgmi/dcgmi-topo.html
The levels of NCCL: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-p2p-level
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

# From best to worst, what lies between two devices.
MEANINGS = {
    "NV#": "# NVLinks, straight to the other GPU or through an NVSwitch; PCIe is not used",
    "PIX": "one PCIe switch at most",
    "PXB": "several PCIe switches, but not the processor",
    "PHB": "a PCIe host bridge, which is part of the processor",
    "NODE": "two PCIe host bridges of one NUMA node, and what joins them",
    "SYS": "the link between NUMA nodes, as a rule from one processor to the other",
}
# The path kinds that NCCL_P2P_LEVEL can name, from near to far. It has no word for NODE: its PHB
# means the same NUMA node.
P2P_LEVELS = ("LOC", "NVL", "PIX", "PXB", "PHB", "SYS")
_LEVEL_OF = {"NV#": "NVL", "NODE": "PHB"}
_OLD_NAMES = {"SOC": "SYS"}  # of drivers that knew no NODE

# The most that one GPU has; H100 and B200 have as many.
MOST_NVLINKS = 18

GPU = re.compile(r"GPU\d+")


class BadTopology(ValueError):
    """A table that cannot be read; the message says where and what to do."""


@dataclass(frozen=True)
class Link:
    """The path between two devices: its kind, a key of ``MEANINGS``, and its number of NVLinks."""

    kind: str
    nvlinks: int = 0

    @classmethod
    def parse(cls, text: str) -> "Link":
        """Read a cell of the table, such as ``NV2`` or ``SYS``.

        Raises:
            ValueError: no such kind of path.
        """
        text = _OLD_NAMES.get(text, text)
        if re.fullmatch(r"NV[1-9]\d*", text):
            return cls("NV#", int(text[2:]))
        if text not in MEANINGS or text == "NV#":
            raise ValueError(text)
        return cls(text)

    def __str__(self) -> str:
        return f"NV{self.nvlinks}" if self.nvlinks else self.kind

    @property
    def distance(self) -> tuple[int, int]:
        """A key to sort by, the best path first."""
        return list(MEANINGS).index(self.kind), -self.nvlinks

    @property
    def meaning(self) -> str:
        """What lies between the two devices, in plain words."""
        return MEANINGS[self.kind].replace("#", str(self.nvlinks))

    @property
    def p2p_level(self) -> str:
        """The lowest ``NCCL_P2P_LEVEL`` at which NCCL lets two GPUs talk directly on this path."""
        return _LEVEL_OF.get(self.kind, self.kind)


Pair = tuple[str, str, Link]


@dataclass(frozen=True)
class Topology:
    """The devices of a machine and the path between any two.

    ``cpus`` and ``numa`` hold for each GPU the processors and the NUMA nodes near it, as text such
    as ``0-19,40-59``, or None where the table does not tell. ``own_numa`` is the NUMA node that a
    GPU's own memory is, as on a Grace Hopper, or None. ``adapters`` holds the names of the
    network adapters that the table calls ``NIC0`` and so on.
    """

    devices: tuple[str, ...]
    links: dict[tuple[str, str], Link]
    cpus: dict[str, str | None] = field(default_factory=dict)
    numa: dict[str, str | None] = field(default_factory=dict)
    own_numa: dict[str, str | None] = field(default_factory=dict)
    adapters: dict[str, str] = field(default_factory=dict)

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs, in the order of the table."""
        return tuple(name for name in self.devices if GPU.fullmatch(name))

    @property
    def nics(self) -> tuple[str, ...]:
        """The network adapters, in the order of the table."""
        return tuple(name for name in self.devices if not GPU.fullmatch(name))

    def link(self, one: str, other: str) -> Link:
        """Return the path between two devices; KeyError for a device that is not there."""
        return self.links[one, other]

    def pairs(self) -> list[Pair]:
        """Return all pairs of GPUs, the best first; equally good ones in the table's order."""
        found = [(one, other, self.links[one, other]) for one, other in combinations(self.gpus, 2)]
        return sorted(found, key=lambda pair: pair[2].distance)

    def by_link(self) -> dict[Link, list[tuple[str, str]]]:
        """Return the pairs of GPUs of each kind of path, the best kind first."""
        groups: dict[Link, list[tuple[str, str]]] = {}
        for one, other, link in self.pairs():
            groups.setdefault(link, []).append((one, other))
        return groups

    def best_pair(self) -> Pair:
        """Return a pair of GPUs with the best path, the first of equals."""
        return self._some_pairs()[0]

    def worst_pair(self) -> Pair:
        """Return a pair of GPUs with the worst path, the first of equals."""
        pairs = self._some_pairs()
        return next(pair for pair in pairs if pair[2] == pairs[-1][2])

    def _some_pairs(self) -> list[Pair]:
        if len(self.gpus) < 2:
            raise BadTopology(f"the machine has {len(self.gpus)} GPU: there is no pair to compare")
        return self.pairs()

    def nvlinks(self, gpu: str) -> int:
        """Return the sum of the NVLinks in one GPU's row."""
        return sum(self.links[gpu, other].nvlinks for other in self.gpus if other != gpu)

    @property
    def switched(self) -> bool:
        """Whether the NVLinks must lead to NVSwitches: a row has more of them than a GPU has."""
        return any(self.nvlinks(gpu) > MOST_NVLINKS for gpu in self.gpus)

    def near(self, nic: str) -> list[str]:
        """Return the GPUs with the best path to a network adapter."""
        best = min(self.links[nic, gpu].distance for gpu in self.gpus)
        return [gpu for gpu in self.gpus if self.links[nic, gpu].distance == best]

    def direct(self, level: str) -> list[Pair]:
        """Return the pairs of GPUs that talk directly when ``NCCL_P2P_LEVEL`` is ``level``.

        The level only permits it. Whether driver and processor can do it for a pair is what
        ``nvidia-smi topo -p2p r`` shows.

        Raises:
            ValueError: a level that NCCL does not have.
        """
        if level not in P2P_LEVELS:
            raise ValueError(f"NCCL_P2P_LEVEL={level}: choose one of {', '.join(P2P_LEVELS)}")
        reach = P2P_LEVELS.index(level)
        return [pair for pair in self.pairs() if P2P_LEVELS.index(pair[2].p2p_level) <= reach]


def levels(topology: Topology) -> Iterator[tuple[str, int]]:
    """Yield each ``NCCL_P2P_LEVEL`` with the number of GPU pairs that talk directly at it."""
    for level in P2P_LEVELS:
        yield level, len(topology.direct(level))
