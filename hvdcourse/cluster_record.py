"""What is written down about the hosts that ``hvdcourse cluster`` makes, before it makes them.

The record outlives a crash, so that a later ``down`` knows what is ours, and removes nothing else.
Keys and settings of the hosts lie in the same folder, which only root can read.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

# On most systems /run is in memory: keys never reach a disk, and nothing outlives a reboot.
FOLDER = Path("/run/hvdcourse-cluster")
LOCK = Path("/run/hvdcourse-cluster.lock")
LOCK_SECONDS = 60.0
NAMESPACES = Path("/run/netns")
PREFIX = "hvdcourse-"
SWITCH = PREFIX + "switch"
# The hosts' link to each other. It has the same name on all of them: Horovod's Gloo needs that.
INTERFACE = "hvd0"
# No other part of the machine sees this network, so it cannot collide with one in use.
SUBNET = "10.83.0"


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
    def folder(self) -> Path:
        """Where its keys and settings are."""
        return FOLDER / self.name


@dataclass
class Record:
    """What was asked for, and which namespaces exist, or may exist, because of it."""

    slots: list[int]
    bandwidth: str | None
    namespaces: list[str] = field(default_factory=list)
    complete: bool = False
    # The block that the hosts are for, and that removes them; none where a person asked for them.
    owner: str | None = None

    @property
    def hosts(self) -> list[Host]:
        """The hosts, in the order of their names."""
        return [
            Host(f"node{number}", f"{SUBNET}.{number}", slots)
            for number, slots in enumerate(self.slots, start=1)
        ]

    def same_request(self, other: "Record") -> bool:
        """Tell whether the other record asks for the same hosts."""
        return (self.slots, self.bandwidth) == (other.slots, other.bandwidth)

    def describe(self) -> str:
        """Return the request in words."""
        slots = ",".join(map(str, self.slots))
        return (
            f"{len(self.slots)} hosts, slots {slots}, bandwidth {self.bandwidth or 'not limited'}"
        )

    def write(self) -> None:
        """Write the record, whole or not at all."""
        FOLDER.mkdir(mode=0o700, exist_ok=True)
        temporary = FOLDER / "record.partial"
        temporary.write_text(json.dumps(asdict(self)))
        temporary.rename(FOLDER / "record.json")

    @contextmanager
    def intending(self, namespace: str) -> Iterator[None]:
        """Write the namespace down before the block makes it; where that fails, it is not ours."""
        self.namespaces.append(namespace)
        self.write()
        try:
            yield
        except ClusterError:
            self.namespaces.remove(namespace)
            self.write()
            raise


def read_record() -> Record | None:
    """Return the record of the hosts that exist; None where there are none."""
    try:
        fields: dict[str, Any] = json.loads((FOLDER / "record.json").read_text())
    except FileNotFoundError:
        return None
    return Record(**fields)


@contextmanager
def only_one() -> Iterator[None]:
    """Keep other ``hvdcourse cluster`` commands from changing the hosts during the block.

    Raises:
        ClusterError: another one has been at work for a minute.
    """
    lock = FileLock(LOCK, timeout=LOCK_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        raise ClusterError(
            "another `hvdcourse cluster` command is at work; wait for it, or end it"
        ) from None
    try:
        yield
    finally:
        lock.release()


def as_root() -> bool:
    """Tell whether this process may make namespaces at all."""
    return os.geteuid() == 0
