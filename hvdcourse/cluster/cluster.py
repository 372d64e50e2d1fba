"""Several hosts on one Linux machine, each with its own network, name, address and sshd.

    with cluster.hosts(3, slots=2) as hosts:
        cluster.execute(hosts[0], cluster.horovodrun_command(hosts, script=["train.py"]))

It needs root, iproute2, openssh-server and openssh-client; ``missing()`` says what is not there.
There is one cluster on a machine at a time. The hosts are Linux namespaces, namespaces(7).
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from hvdcourse.cluster import network
from hvdcourse.cluster.commands import horovodrun_command, hosts_from, plain_mpirun_command
from hvdcourse.cluster.execute import CommandFailed, Completed, execute
from hvdcourse.cluster.host import (
    end_processes,
    first_process,
    is_ready,
    start,
    wait_until_ready,
    write_settings,
)
from hvdcourse.cluster.plan import (
    FOLDER,
    ClusterError,
    Host,
    Plan,
    checked_plan,
    read_plan,
    refuse_without_root,
)
from hvdcourse.errors import BadInput
from hvdcourse.machine.signals import undisturbed

__all__ = [
    "ClusterError",
    "CommandFailed",
    "Completed",
    "Host",
    "down",
    "execute",
    "find_host",
    "horovodrun_command",
    "hosts",
    "hosts_from",
    "missing",
    "plain_mpirun_command",
    "status",
    "up",
]

LOCK = Path("/run/hvdcourse-cluster.lock")
LOCK_SECONDS = 60.0
_PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "setpriv": "util-linux",
}
# Everything that a host is made of, in namespaces that are gone when this ends.
_TRIAL = (
    *("unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"),
    *("sh", "-ec", "ip link add trial0 type bridge && ip link add trial1 type veth"),
)


def missing() -> str | None:
    """Say in one sentence why this machine cannot have several hosts; None where it can.

    With ``HVDCOURSE_CLUSTER=0`` in the environment it shall not have them.
    """
    if os.environ.get("HVDCOURSE_CLUSTER", "1") == "0":
        return "HVDCOURSE_CLUSTER=0 asks for one host only"
    if os.geteuid() != 0:
        return "making hosts needs root: `sudo .venv/bin/hvdcourse …`, or JupyterLab as root"
    lacking = [
        program for program in _PACKAGES if not shutil.which(program, path=network.search_path())
    ]
    if lacking:
        packages = " ".join(sorted({_PACKAGES[program] for program in lacking}))
        return f"{', '.join(lacking)} not found; on Debian and Ubuntu: apt-get install {packages}"
    try:
        network.command(*_TRIAL)
    except ClusterError as error:
        return f"no network namespaces here; a container needs --privileged for them ({error})"
    return None


@contextmanager
def only_one() -> Iterator[None]:
    """Keep other ``hvdcourse cluster`` commands from changing the hosts during the block."""
    try:
        with FileLock(LOCK, timeout=LOCK_SECONDS):
            yield
    except Timeout:
        raise ClusterError(
            "another `hvdcourse cluster` command is at work; wait for it, or end it"
        ) from None


def up(
    count: int | str = 2, slots: int | str | Sequence[int] = 2, bandwidth: str | None = None
) -> list[Host]:
    """Make hosts node1, node2 … and return them; where they are up already, do nothing.

    Args:
        count: how many hosts.
        slots: how many ranks each holds: one number, or one for each host. It is only noted.
        bandwidth: what each host's link lets through each way, such as "1gbit"; None: no limit.

    Raises:
        BadInput: an argument is wrong.
        ClusterError: the machine cannot have them, other hosts are up, or something failed; what
            was made before has then been removed.
    """
    plan = checked_plan(count, slots, bandwidth)
    make_unless_up(plan)
    return plan.hosts


def make_unless_up(plan: Plan) -> bool:
    """Make the planned hosts; return False where they were up before."""
    reason = missing()
    if reason is not None:
        raise ClusterError(reason)
    with only_one():
        if are_up(plan):
            return False
        remove()  # What a crash has left.
        try:
            make(plan)
        except BaseException:
            with undisturbed():
                remove()
            raise
    return True


def make(plan: Plan) -> None:
    """Make the switch and the hosts, and wait until all are ready."""
    plan.write()
    write_settings(plan.hosts)
    network.add_switch()
    for host in plan.hosts:
        network.add_host(host, plan.bandwidth)
        start(host, plan.maker)
    for host in plan.hosts:
        wait_until_ready(host)


def are_up(plan: Plan) -> bool:
    """Tell whether the planned hosts are up. Raises ClusterError where others are."""
    if not network.all_processes():
        return False
    present = read_plan()
    if present is None or not is_whole(present):
        raise ClusterError(
            "the hosts that are up are not whole; run `hvdcourse cluster down`, then `up` again"
        )
    if (present.slots, present.bandwidth) != (plan.slots, plan.bandwidth):
        raise ClusterError(
            f"other hosts are up already ({present.describe()}); run `hvdcourse cluster down` first"
        )
    return True


def is_whole(plan: Plan) -> bool:
    """Tell whether all that is planned runs."""
    return all(is_ready(host) for host in plan.hosts)


def down() -> bool:
    """Remove the hosts and all that runs on them; return whether there were any.

    Raises:
        ClusterError: it needs root, or something could not be removed.
    """
    refuse_without_root("removing hosts")
    with only_one():
        return remove()


def remove() -> bool:
    """Remove all that hosts are made of, by any process; return whether there was a host."""
    end_processes()
    there_were_any = network.remove_namespaces()
    shutil.rmtree(FOLDER, ignore_errors=True)
    return there_were_any


def status() -> dict[str, Any]:
    """Return what is up, as plain data: ``up``, ``bandwidth``, and each host with ``running``.

    Raises:
        ClusterError: it needs root.
    """
    refuse_without_root("looking at the hosts")
    plan = read_plan()
    if plan is None:
        return {"up": False, "bandwidth": None, "hosts": []}
    rows = [{**asdict(host), "running": first_process(host) is not None} for host in plan.hosts]
    return {"up": is_whole(plan), "bandwidth": plan.bandwidth, "hosts": rows}


def find_host(name: str) -> Host:
    """Return the host of this name.

    Raises:
        BadInput: no such host, or none at all.
        ClusterError: it needs root.
    """
    refuse_without_root("entering a host")
    plan = read_plan()
    if plan is None:
        raise BadInput("no hosts are up; run `hvdcourse cluster up` first")
    by_name = {host.name: host for host in plan.hosts}
    if name not in by_name:
        raise BadInput(f"there is no host {name!r}; the hosts are {', '.join(by_name)}")
    return by_name[name]


@contextmanager
def hosts(
    count: int | str = 2, slots: int | str | Sequence[int] = 2, bandwidth: str | None = None
) -> Iterator[list[Host]]:
    """Make hosts for the block, as ``up`` does, and remove them however it ends.

    Hosts that were up before the block stay. Where this process is killed, all that runs on the
    hosts ends with it; the next hosts, or ``down``, take the place of the empty rest.
    """
    plan = checked_plan(count, slots, bandwidth, maker=os.getpid())
    are_ours = make_unless_up(plan)
    try:
        yield plan.hosts
    finally:
        if are_ours:
            with undisturbed(), only_one():
                if read_plan() == plan:
                    remove()
