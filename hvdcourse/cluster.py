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
from typing import Any
from uuid import uuid4

from hvdcourse.cluster_commands import (
    horovodrun_command,
    host_list,
    hosts_from,
    mpirun_command,
)
from hvdcourse.cluster_execute import CommandFailed, Completed, execute, undisturbed
from hvdcourse.cluster_guard import guarded
from hvdcourse.cluster_host import (
    end_processes,
    first_process,
    start,
    wait_until_ready,
    write_settings,
)
from hvdcourse.cluster_network import (
    add_host,
    add_switch,
    checked_bandwidth,
    command,
    remove_namespace,
    search_path,
)
from hvdcourse.cluster_record import (
    FOLDER,
    ClusterError,
    Host,
    Record,
    as_root,
    only_one,
    read_record,
)
from hvdcourse.launch import BadInput

__all__ = [
    "ClusterError",
    "CommandFailed",
    "Completed",
    "Host",
    "down",
    "execute",
    "find_host",
    "horovodrun_command",
    "host_list",
    "hosts",
    "hosts_from",
    "missing",
    "mpirun_command",
    "status",
    "up",
]

MOST_HOSTS = 16
MOST_SLOTS = 64
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
    if not as_root():
        return "making hosts needs root: `sudo .venv/bin/hvdcourse …`, or JupyterLab as root"
    lacking = [program for program in _PACKAGES if not shutil.which(program, path=search_path())]
    if lacking:
        packages = " ".join(sorted({_PACKAGES[program] for program in lacking}))
        return f"{', '.join(lacking)} not found; on Debian and Ubuntu: apt-get install {packages}"
    try:
        command(*_TRIAL)
    except ClusterError as error:
        return f"no network namespaces here; a container needs --privileged for them ({error})"
    return None


def checked_slots(count: Any, slots: Any) -> list[int]:
    """Return the slots of each host, from one number for all or one for each.

    Raises:
        BadInput: a number is wrong, or there are not as many as hosts.
    """
    hosts = whole_number(count, "hosts", MOST_HOSTS)
    each = slots.split(",") if isinstance(slots, str) else slots
    each = list(each) if isinstance(each, Sequence) else [each]
    numbers = [whole_number(one, "slots", MOST_SLOTS) for one in each]
    if len(numbers) not in (1, hosts):
        raise BadInput(
            f"slots must be one number, or one for each of the {hosts} hosts, such as "
            f"{','.join(['2'] + ['1'] * (hosts - 1))}; got {slots!r}"
        )
    return numbers * (hosts if len(numbers) == 1 else 1)


def whole_number(value: Any, name: str, most: int) -> int:
    """Return a whole number from 1 to ``most``. Raises BadInput where it is none."""
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if not 1 <= number <= most:
        raise BadInput(f"{name} must be a whole number from 1 to {most}; got {value!r}")
    return number


def refuse_if_missing() -> None:
    """Raise ClusterError where this machine cannot have several hosts."""
    reason = missing()
    if reason is not None:
        raise ClusterError(reason)


def up(
    count: int = 2,
    slots: int | str | Sequence[int] = 2,
    bandwidth: str | None = None,
    *,
    owner: str | None = None,
) -> list[Host]:
    """Make hosts node1, node2 … and return them; where they are up already, do nothing.

    Args:
        count: how many hosts.
        slots: how many ranks each holds: one number, or one for each host. It is only noted.
        bandwidth: what each host's link lets through each way, such as "1gbit"; None: no limit.
        owner: who makes them, if it is not to be anyone who removes them; see ``down``.

    Raises:
        BadInput: an argument is wrong.
        ClusterError: the machine cannot have them, other hosts are up, or something failed; what
            was made before has then been removed.
    """
    wanted = Record(checked_slots(count, slots), checked_bandwidth(bandwidth), owner=owner)
    refuse_if_missing()
    with only_one():
        record = read_record()
        if record is not None:
            return already_up(record, wanted)
        if FOLDER.exists():
            shutil.rmtree(FOLDER)  # It was left before anything was made.
        try:
            make(wanted)
        except BaseException:
            with undisturbed():
                remove(wanted)
            raise
    return wanted.hosts


def make(record: Record) -> None:
    """Make everything that the record asks for, each thing written down before."""
    record.write()
    add_switch(record)
    write_settings(record.hosts)
    for host in record.hosts:
        add_host(record, host)
        start(host)
    for host in record.hosts:
        wait_until_ready(host)
    record.complete = True
    record.write()


def already_up(record: Record, wanted: Record) -> list[Host]:
    """Return the hosts that are up, if they are whole and those that were asked for."""
    if not record.same_request(wanted):
        raise ClusterError(
            f"other hosts are up already ({record.describe()}); run `hvdcourse cluster down` first"
        )
    if not whole(record):
        raise ClusterError(
            "the hosts that are up are not whole; run `hvdcourse cluster down`, then `up` again"
        )
    return record.hosts


def whole(record: Record) -> bool:
    """Tell whether all that the record asks for was made, and all hosts are running."""
    return record.complete and all(first_process(host) is not None for host in record.hosts)


def down(owner: str | None = None) -> bool:
    """Remove the hosts and all that runs on them; return whether there were any.

    Args:
        owner: leave hosts that somebody else has made where they are; None: remove all.

    Raises:
        ClusterError: it needs root, or something could not be removed.
    """
    if not as_root():
        raise ClusterError("removing hosts needs root: use `sudo`")
    with only_one():
        record = read_record()
        if record is not None and owner not in (None, record.owner):
            return False
        if record is not None:
            remove(record)
        elif FOLDER.exists():
            shutil.rmtree(FOLDER)
    return record is not None


def remove(record: Record) -> None:
    """Remove all that the record names; what fails stays written down for another try."""
    for namespace in reversed(record.namespaces):
        end_processes(namespace)
    for namespace in reversed(list(record.namespaces)):
        remove_namespace(namespace)
        record.namespaces.remove(namespace)
        record.write()
    shutil.rmtree(FOLDER, ignore_errors=True)


def status() -> dict[str, Any]:
    """Return what is up, as plain data: ``up``, ``bandwidth``, and each host with ``running``.

    Raises:
        ClusterError: it needs root.
    """
    if not as_root():
        raise ClusterError("looking at the hosts needs root: use `sudo`")
    record = read_record()
    if record is None:
        return {"up": False, "bandwidth": None, "hosts": []}
    rows = [
        {
            "name": host.name,
            "address": host.address,
            "slots": host.slots,
            "running": first_process(host) is not None,
        }
        for host in record.hosts
    ]
    return {"up": whole(record), "bandwidth": record.bandwidth, "hosts": rows}


def find_host(name: str) -> Host:
    """Return the host of this name.

    Raises:
        BadInput: no such host, or none at all.
        ClusterError: it needs root.
    """
    if not as_root():
        raise ClusterError("entering a host needs root: use `sudo`")
    record = read_record()
    if record is None:
        raise BadInput("no hosts are up; run `hvdcourse cluster up` first")
    for host in record.hosts:
        if host.name == name:
            return host
    names = ", ".join(host.name for host in record.hosts)
    raise BadInput(f"there is no host {name!r}; the hosts are {names}")


@contextmanager
def hosts(
    count: int = 2, slots: int | str | Sequence[int] = 2, bandwidth: str | None = None
) -> Iterator[list[Host]]:
    """Make hosts for the block, as ``up`` does, and remove them however it ends.

    They are removed also where this process is killed, while they are made too. Hosts that were up
    before the block stay.
    """
    owner = uuid4().hex
    with guarded(owner):
        made = up(count, slots, bandwidth, owner=owner)
        try:
            yield made
        finally:
            with undisturbed():
                down(owner)
