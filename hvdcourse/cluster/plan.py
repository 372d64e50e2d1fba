"""What was asked for, kept for later commands, and the names of everything that makes the hosts.

Every network namespace whose name starts with ``hvdcourse-`` belongs to the hosts, so that
``ip netns list`` shows all that there is to remove, after a crash too.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hvdcourse.errors import BadInput, bits_per_second, whole_number
from hvdcourse.files import write_whole

# On most systems /run is in memory: keys never reach a disk, and nothing outlives a reboot.
FOLDER = Path("/run/hvdcourse-cluster")
NAMESPACES = Path("/run/netns")
PREFIX = "hvdcourse-"
SWITCH = PREFIX + "switch"
# The hosts' link to each other. It has the same name on all of them: Horovod's Gloo needs that.
INTERFACE = "hvd0"
# No other part of the machine sees this network, so it cannot collide with one in use.
SUBNET = "10.83.0"
MOST_HOSTS = 16
MOST_SLOTS = 64


class ClusterError(RuntimeError):
    """The hosts cannot be made, found or removed; the message says what to do."""


@dataclass(frozen=True)
class Host:
    """A host of the cluster: its name, its address, and how many ranks it is meant to hold."""

    name: str
    address: str
    slots: int

    @property
    def namespace(self) -> str:
        """The name of its network namespace, as ``ip netns list`` shows it."""
        return PREFIX + self.name

    @property
    def log(self) -> Path:
        """What its first process prints."""
        return FOLDER / f"{self.name}.log"


@dataclass(frozen=True)
class Plan:
    """Which hosts to make, and the process that they end with; without one they stay."""

    slots: list[int]
    bandwidth: str | None
    maker: int | None = None

    @property
    def hosts(self) -> list[Host]:
        """The hosts, in the order of their names."""
        return [
            Host(f"node{number}", f"{SUBNET}.{number}", slots)
            for number, slots in enumerate(self.slots, start=1)
        ]

    def describe(self) -> str:
        """Return the plan in words."""
        slots = ",".join(map(str, self.slots))
        bandwidth = self.bandwidth or "not limited"
        maker = f", of process {self.maker}" if self.maker else ""
        return f"{len(self.slots)} hosts, slots {slots}, bandwidth {bandwidth}{maker}"

    def write(self) -> None:
        """Keep the plan in a new folder that only root can read."""
        FOLDER.mkdir(mode=0o700)
        write_whole(FOLDER / "plan.json", json.dumps(asdict(self)), durable=False)


def read_plan() -> Plan | None:
    """Return the plan of the hosts that exist; None where there are none."""
    try:
        return Plan(**json.loads((FOLDER / "plan.json").read_text()))
    except FileNotFoundError:
        return None


def checked_slots(count: Any, slots: Any) -> list[int]:
    """Return the slots of each host, from one number for all or one for each.

    Raises:
        BadInput: a number is wrong, or there are not as many as hosts.
    """
    hosts = whole_number(count, "hosts", MOST_HOSTS)
    values = slots.split(",") if isinstance(slots, str) else slots
    values = values if isinstance(values, Sequence) else [values]
    numbers = [whole_number(value, "slots", MOST_SLOTS) for value in values]
    if len(numbers) not in (1, hosts):
        raise BadInput(
            f"slots must be one number, or one for each of the {hosts} hosts, such as "
            f"{','.join(['2'] + ['1'] * (hosts - 1))}; got {slots!r}"
        )
    return numbers * (hosts if len(numbers) == 1 else 1)


def checked_plan(count: Any, slots: Any, bandwidth: str | None, maker: int | None = None) -> Plan:
    """Return the plan of these hosts. Raises BadInput where there can be none."""
    if bandwidth is not None:
        bits_per_second(bandwidth)
    return Plan(checked_slots(count, slots), bandwidth, maker)


def refuse_without_root(action: str) -> None:
    """Raise ClusterError unless this process may do the action, such as "removing hosts"."""
    if os.geteuid() != 0:
        raise ClusterError(f"{action} needs root: use `sudo`")
