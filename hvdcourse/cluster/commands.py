"""The launch commands for several hosts, as anyone could type them on one of the hosts."""

import shlex
import sys
from collections.abc import Mapping, Sequence

from hvdcourse.cluster.plan import INTERFACE, Host
from hvdcourse.errors import BadInput
from hvdcourse.launch.command_line import BACKENDS

Hosts = Sequence[Host] | Mapping[str, int]


def hosts_from(text: str) -> dict[str, int]:
    """Return the hosts that a launcher's ``a:4,b:4`` names, with their slots.

    Raises:
        BadInput: it names no hosts, or none with slots.
    """
    hosts: dict[str, int] = {}
    for entry in text.split(","):
        name, _, slots = entry.strip().rpartition(":")
        if not name or not slots.isdecimal() or int(slots) < 1 or name in hosts:
            raise BadInput(f"hosts are written as a:4,b:4, each once, with slots; got {text!r}")
        hosts[name] = int(slots)
    return hosts


def slots_of(hosts: Hosts) -> dict[str, int]:
    """Return the slots of each host by its name."""
    return dict(hosts) if isinstance(hosts, Mapping) else {host.name: host.slots for host in hosts}


def host_list(hosts: Hosts) -> str:
    """Return the hosts as launchers read them: ``node1:2,node2:1``."""
    return ",".join(f"{name}:{slots}" for name, slots in slots_of(hosts).items())


def checked_hosts(hosts: Hosts, np: int | None) -> int:
    """Return the number of ranks; None means one for each slot.

    Raises:
        BadInput: no host, or not as many slots.
    """
    slots = sum(slots_of(hosts).values())
    if slots < 1:
        raise BadInput("hosts must name at least one host with a slot")
    if np is not None and not 1 <= np <= slots:
        raise BadInput(f"np must be 1 to {slots}, the slots of {host_list(hosts)}; got {np}")
    return np or slots


def horovodrun_command(
    hosts: Hosts,
    np: int | None = None,
    backend: str = "gloo",
    script: Sequence[str] = (),
    interface: str | None = INTERFACE,
) -> list[str]:
    """Return the ``horovodrun`` line that starts ``python SCRIPT…`` on several hosts.

    Args:
        hosts: the cluster's hosts, or ``{"node1": 2, "node2": 1}``.
        np: how many ranks; None for one for each slot.
        backend: ``"gloo"`` or ``"mpi"``.
        script: the script and its arguments.
        interface: the network interface, of the same name on all hosts; None: the launcher
            looks for one.

    Raises:
        BadInput: an argument is wrong.
    """
    if backend not in BACKENDS:
        raise BadInput(f"backend must be one of {', '.join(BACKENDS)}; got {backend!r}")
    ranks = checked_hosts(hosts, np)
    words = ["horovodrun", "-np", str(ranks), "-H", host_list(hosts)]
    words += ["--network-interfaces", interface] if interface is not None else []
    words += [f"--{backend}"]
    if backend == "mpi":
        # ssh gives no PATH on the other hosts, so Open MPI must be told where its daemon is.
        messages = f" --mca oob_tcp_if_include {interface}" if interface is not None else ""
        words += [f"--mpi-args=--prefix {shlex.quote(sys.prefix)}{messages}"]
    return [*words, "python", *script]


def plain_mpirun_command(
    hosts: Hosts,
    script: Sequence[str] = (),
    interface: str | None = INTERFACE,
) -> list[str]:
    """Return the plain ``mpirun`` line for the same: horovodrun writes most of this for you.

    The arguments and errors are those of ``horovodrun_command``.
    """
    ranks = checked_hosts(hosts, None)
    words = ["mpirun", "--prefix", sys.prefix, "-np", str(ranks), "-H", host_list(hosts)]
    words += ["--bind-to", "none", "--map-by", "slot", "--allow-run-as-root"]
    words += ["--mca", "pml", "ob1", "--mca", "btl", "^openib"]
    if interface is not None:
        for layer in ("btl", "oob"):
            words += ["--mca", f"{layer}_tcp_if_include", interface]
    for name in ("PATH", "OPAL_PREFIX", "TF_CPP_MIN_LOG_LEVEL"):
        words += ["-x", name]
    return [*words, "python", *script]
