"""The hosts' network: a switch in a namespace of its own, and one cable to each host.

Nothing is added to the machine's own network: no interface, no address, no route. So nothing on
it can be disturbed, and a firewall on the machine does not stand between the hosts.
"""

import os
import re
import subprocess

from hvdcourse.cluster_record import INTERFACE, NAMESPACES, SWITCH, ClusterError, Host, Record
from hvdcourse.launch import BadInput

COMMAND_SECONDS = 20.0
_BANDWIDTH = re.compile(r"(\d{1,4})([kmg])bit")
_BITS = {"k": 10**3, "m": 10**6, "g": 10**9}
# A smaller bucket slows large messages down by a third.
SMALLEST_BURST_BYTES = 128 * 1024


def search_path() -> str:
    """Return PATH with the folders of the system's programs, which `su` and cron leave out."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def checked_bandwidth(bandwidth: str | None) -> str | None:
    """Return a bandwidth as ``tc`` reads it, such as 1gbit. Raises BadInput where it is none."""
    if bandwidth is None:
        return None
    if not _BANDWIDTH.fullmatch(bandwidth) or bits_per_second(bandwidth) < 10**6:
        raise BadInput(
            f"bandwidth must be a rate from 1mbit up, such as 100mbit or 1gbit; got {bandwidth!r}"
        )
    return bandwidth


def bits_per_second(bandwidth: str) -> int:
    """Return the number of bits per second of a rate such as 100mbit."""
    number, unit = _BANDWIDTH.fullmatch(bandwidth).groups()
    return int(number) * _BITS[unit]


def burst_bytes(bandwidth: str) -> int:
    """Return how much may pass at once: what the rate lets through in a millisecond, or more."""
    return max(SMALLEST_BURST_BYTES, bits_per_second(bandwidth) // 8000)


def command(*words: str) -> str:
    """Run a short command and return what it prints.

    Raises:
        ClusterError: it failed, or did not end; the message has its command line and its reason.
    """
    line = " ".join(words)
    try:
        done = subprocess.run(
            words,
            env={**os.environ, "PATH": search_path()},
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"`{line}` did not end in {COMMAND_SECONDS:.0f} s") from None
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())
        raise ClusterError(f"`{line}` failed: {said or f'exit status {done.returncode}'}")
    return done.stdout


def add_namespace(record: Record, name: str) -> None:
    """Make a network namespace and write down that it is ours.

    Raises:
        ClusterError: there is one of this name already.
    """
    if (NAMESPACES / name).exists():
        raise ClusterError(
            f"there is a network namespace {name} that this command has not made; it stays as it "
            f"is. If it is not needed: ip netns delete {name}"
        )
    with record.intending(name):
        command("ip", "netns", "add", name)


def add_switch(record: Record) -> None:
    """Make the bridge that all hosts are plugged into."""
    add_namespace(record, SWITCH)
    command("ip", "-n", SWITCH, "link", "add", INTERFACE, "type", "bridge")
    command("ip", "-n", SWITCH, "link", "set", INTERFACE, "up")


def add_host(record: Record, host: Host) -> None:
    """Make a host's namespace, plug it into the switch, and limit its link's rate both ways."""
    add_namespace(record, host.namespace)
    inside, switch = ("ip", "-n", host.namespace), ("ip", "-n", SWITCH)
    ends = ("type", "veth", "peer", "name", INTERFACE, "netns", host.namespace)
    command(*switch, "link", "add", host.name, *ends)
    command(*switch, "link", "set", host.name, "master", INTERFACE, "up")
    command(*inside, "address", "add", f"{host.address}/24", "dev", INTERFACE)
    for interface in ("lo", INTERFACE):
        command(*inside, "link", "set", interface, "up")
    if record.bandwidth is not None:
        limit_rate(host.namespace, INTERFACE, record.bandwidth)
        limit_rate(SWITCH, host.name, record.bandwidth)


def limit_rate(namespace: str, interface: str, bandwidth: str) -> None:
    """Let no more than ``bandwidth`` leave through an interface: a token bucket, tc-tbf(8)."""
    bucket = ("rate", bandwidth, "burst", str(burst_bytes(bandwidth)), "latency", "200ms")
    command("tc", "-n", namespace, "qdisc", "add", "dev", interface, "root", "tbf", *bucket)


def remove_namespace(name: str) -> None:
    """Remove a namespace and every interface in it, unless it has gone already."""
    if (NAMESPACES / name).exists():
        command("ip", "netns", "delete", name)


def pids_in(namespace: str) -> list[int]:
    """Return the processes whose network is this namespace, as this machine numbers them."""
    if not (NAMESPACES / namespace).exists():
        return []
    return [int(pid) for pid in command("ip", "netns", "pids", namespace).split()]
