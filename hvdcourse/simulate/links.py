"""Links with a latency and a bandwidth, and the clusters that they make."""

import math
from dataclasses import dataclass
from typing import Any

from hvdcourse.errors import BadInput, bits_per_second


@dataclass(frozen=True)
class Link:
    """What one message pays: ``latency`` in seconds, ``bandwidth`` in bytes per second.

    The α–β model: a message of S bytes takes α + S / β (Hockney 1994,
    doi:10.1016/S0167-8191(06)80021-9).
    """

    latency: float
    bandwidth: float

    def __post_init__(self) -> None:
        if not 0 <= self.latency < math.inf:
            raise BadInput(
                f"a link's latency must be a number of seconds from 0; got {self.latency!r}"
            )
        if not self.bandwidth > 0:
            raise BadInput(
                f"a link's bandwidth must be bytes per second above 0; got {self.bandwidth!r}"
            )

    def seconds(self, size: float) -> float:
        """Return the seconds that a message of so many bytes takes."""
        return self.latency + size / self.bandwidth


@dataclass(frozen=True)
class Cluster:
    """Hosts with as many ranks each, a link inside of each host, and one to the other hosts.

    All ranks of a host share its one link ``between`` the hosts. Messages into a host do not
    slow those out of it down.
    """

    hosts: int
    ranks_per_host: int
    inside: Link
    between: Link

    def __post_init__(self) -> None:
        for name in ("hosts", "ranks_per_host"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise BadInput(f"{name} must be a whole number from 1; got {value!r}")

    @property
    def ranks(self) -> int:
        """The number of all ranks."""
        return self.hosts * self.ranks_per_host


def flat(ranks: int, link: Link) -> Cluster:
    """Return the cluster of so many hosts with one rank each."""
    return Cluster(ranks, 1, link, link)


# What a hop of a ring takes in NCCL's own cost model (src/graph/tuning.cc of NCCL 2.20): `hwLat`,
# protocol Simple, times the "plateau effect" that it counts for large tensors on several hosts.
PLATEAU = 1.9
NVLINK_LATENCY, PCIE_LATENCY, NETWORK_LATENCY = PLATEAU * 3.4e-6, PLATEAU * 5.7e-6, PLATEAU * 14e-6

LINKS = {
    # PCIe 3.0 x16, as NCCL counts it: 12 GB/s (PCI_WIDTH in src/graph/topo.h).
    "pcie": Link(PCIE_LATENCY, 12e9),
    # V100: 300 GB/s in both directions together (NVIDIA's V100 white paper, 2017).
    "nvlink": Link(NVLINK_LATENCY, 150e9),
    # H100: 900 GB/s in both directions together (NVIDIA's H100 white paper, 2022).
    "nvlink4": Link(NVLINK_LATENCY, 450e9),
}


def read_link(text: Any) -> Link:
    """Return the link of a name, such as nvlink, or of a network's rate, such as 25gbit.

    A rate is what is written on the cable: 10, 25, 100 or 400 Gbit/s Ethernet or InfiniBand.

    Raises:
        BadInput: it is neither.
    """
    if text in LINKS:
        return LINKS[text]
    try:
        return Link(NETWORK_LATENCY, bits_per_second(str(text)) / 8)
    except BadInput:
        names = ", ".join(LINKS)
        raise BadInput(
            f"a link must be one of {names}, or a rate such as 25gbit; got {text!r}"
        ) from None
