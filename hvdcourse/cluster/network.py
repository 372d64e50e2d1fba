"""The hosts' network: a switch in a namespace of its own, and one cable to each host.

Nothing is added to the machine's own network: no interface, no address, no route. So nothing on
it can be disturbed, and a firewall on the machine does not stand between the hosts.
"""

import os
import subprocess

import psutil

from hvdcourse.cluster.plan import INTERFACE, NAMESPACES, PREFIX, SWITCH, ClusterError, Host
from hvdcourse.errors import bits_per_second

COMMAND_SECONDS = 20.0
# A smaller bucket slows large messages down by a third.
SMALLEST_BURST_BYTES = 128 * 1024


def search_path() -> str:
    """Return PATH with the folders of the system's programs, which `su` and cron leave out."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


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


def add_switch() -> None:
    """Make the bridge that all hosts are plugged into."""
    command("ip", "netns", "add", SWITCH)
    command("ip", "-n", SWITCH, "link", "add", INTERFACE, "type", "bridge")
    command("ip", "-n", SWITCH, "link", "set", INTERFACE, "up")


def add_host(host: Host, bandwidth: str | None) -> None:
    """Make a host's namespace, plug it into the switch, and limit its link's rate both ways."""
    command("ip", "netns", "add", host.namespace)
    inside, switch = ("ip", "-n", host.namespace), ("ip", "-n", SWITCH)
    ends = ("type", "veth", "peer", "name", INTERFACE, "netns", host.namespace)
    command(*switch, "link", "add", host.name, *ends)
    command(*switch, "link", "set", host.name, "master", INTERFACE, "up")
    command(*inside, "address", "add", f"{host.address}/24", "dev", INTERFACE)
    for interface in ("lo", INTERFACE):
        command(*inside, "link", "set", interface, "up")
    if bandwidth is not None:
        limit_rate(host.namespace, INTERFACE, bandwidth)
        limit_rate(SWITCH, host.name, bandwidth)


def limit_rate(namespace: str, interface: str, bandwidth: str) -> None:
    """Let no more than ``bandwidth`` leave through an interface: a token bucket, tc-tbf(8)."""
    bucket = ("rate", bandwidth, "burst", str(burst_bytes(bandwidth)), "latency", "200ms")
    command("tc", "-n", namespace, "qdisc", "add", "dev", interface, "root", "tbf", *bucket)


def remove_namespaces() -> bool:
    """Remove the namespaces of the switch and of all hosts; return whether there were any."""
    names = [path.name for path in NAMESPACES.glob(f"{PREFIX}*")]
    for name in names:
        command("ip", "netns", "delete", name)
    return bool(names)


def all_processes() -> list[psutil.Process]:
    """Return the processes of all hosts."""
    paths = NAMESPACES.glob(f"{PREFIX}*")
    return [process for path in paths for process in processes_in(path.name)]


def processes_in(namespace: str) -> list[psutil.Process]:
    """Return the processes whose network is this namespace."""
    if not (NAMESPACES / namespace).exists():
        return []
    numbers = {int(pid) for pid in command("ip", "netns", "pids", namespace).split()}
    return [process for process in psutil.process_iter() if process.pid in numbers]
