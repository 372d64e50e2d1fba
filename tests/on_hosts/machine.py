"""What a machine has that hosts are made of, to compare before and after a test."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from hvdcourse.cluster.plan import FOLDER


def nested_processes() -> dict[int, str]:
    """Return the processes that live in other process namespaces, with their names."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(
                line.split(":\t", 1) for line in (folder / "status").read_text().splitlines()
            )
        except OSError:
            continue
        if "zombie" in status["State"]:
            continue
        if len(status["NSpid"].split()) > len(own_numbers()):
            found[int(folder.name)] = status["Name"]
    return found


def own_numbers() -> list[str]:
    """Return this process's numbers, one for each namespace that it is in."""
    text = Path("/proc/self/status").read_text()
    return next(line for line in text.splitlines() if line.startswith("NSpid:")).split()[1:]


def listing(folder: str | Path) -> list[str]:
    """Return the names in a folder; none where it does not exist."""
    return sorted(os.listdir(folder)) if Path(folder).is_dir() else []


def asked(*command: str) -> Any:
    """Return what ``ip -json …`` answers."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    return json.loads(done.stdout or "[]")


def snapshot() -> dict[str, Any]:
    """Return everything on this machine that making hosts could leave behind or change."""
    return {
        "interfaces": sorted(one["ifname"] for one in asked("ip", "-json", "link")),
        "addresses": sorted(
            address["local"]
            for one in asked("ip", "-json", "address")
            for address in one["addr_info"]
        ),
        "routes": sorted(one["dst"] for one in asked("ip", "-json", "route")),
        "namespaces": sorted(one["name"] for one in asked("ip", "-json", "netns", "list")),
        "/etc/netns": listing("/etc/netns"),
        "/etc/ssh": listing("/etc/ssh"),
        "/etc/hosts": Path("/etc/hosts").read_text(),
        "/dev/shm": [name for name in listing("/dev/shm") if ".node" in name],
        "/run/sshd": Path("/run/sshd").exists(),
        "~/.ssh": listing(Path.home() / ".ssh"),
        "mounts": sorted(
            line.split()[1]
            for line in Path("/proc/mounts").read_text().splitlines()
            # `ip netns` makes this one once, and never removes it.
            if line.split()[1] != "/run/netns"
        ),
        "open mpi": [name for name in listing("/tmp") if name.startswith("ompi.node")],
        "processes": nested_processes(),
        "our folder": FOLDER.exists(),
    }
