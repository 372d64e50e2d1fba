"""One host: its settings and keys, and the sshd that is its first process.

A host has its own network, name, processes, /run and /dev/shm, and its own /etc/hosts and
/etc/ssh. All else, your home and this course among it, is the machine's, as a cluster has it on
its shared file system. When the first process ends, the kernel ends all others of that host.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

import psutil

from hvdcourse.cluster_network import command, pids_in, search_path
from hvdcourse.cluster_record import FOLDER, NAMESPACES, ClusterError, Host

SSH_PORT = 22
START_SECONDS = 20.0
END_SECONDS = 10.0
# By this variable all processes of one command are known, on every host that it reaches.
MARK_VARIABLE = "HVDCOURSE_EXECUTION"

# What a host runs first; its arguments are its name and the folder with its settings.
_FIRST_PROCESS = """
set -e
hostname "$1"
mount --bind "$2/hosts" /etc/hosts
mount --bind "$2/shadow" /etc/shadow
mount --bind "$2/ssh" /etc/ssh
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mkdir /run/sshd
exec "$(command -v sshd)" -D -e -f /etc/ssh/sshd_config
"""

_SSHD_CONFIG = """\
ListenAddress {address}:{port}
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PidFile none
MaxStartups 100
AcceptEnv {mark}
"""

# The one key is accepted by all hosts, and all hosts' keys are known: nobody is asked anything.
_SSH_CONFIG = """\
Host *
    User root
    IdentityFile /etc/ssh/user_key
    IdentitiesOnly yes
    GlobalKnownHostsFile /etc/ssh/ssh_known_hosts
    UserKnownHostsFile /dev/null
    UpdateHostKeys no
    StrictHostKeyChecking yes
    BatchMode yes
    ConnectTimeout 10
    LogLevel ERROR
    SendEnv {mark}
"""


def make_key(path: Path, comment: str) -> str:
    """Make a throw-away key pair without a passphrase, and return the public part."""
    command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path))
    return path.with_suffix(".pub").read_text()


def write_settings(hosts: list[Host]) -> None:
    """Make the keys, and write what each host has in its /etc."""
    user_key = FOLDER / "user_key"
    public = make_key(user_key, "hvdcourse")
    names = "127.0.0.1 localhost\n" + "".join(f"{one.address} {one.name}\n" for one in hosts)
    known_hosts = ""
    for host in hosts:
        ssh = host.folder / "ssh"
        ssh.mkdir(parents=True)
        kind_and_key = " ".join(make_key(ssh / "host_key", host.name).split()[:2])
        known_hosts += f"{host.name},{host.address} {kind_and_key}\n"
        config = _SSHD_CONFIG.format(address=host.address, port=SSH_PORT, mark=MARK_VARIABLE)
        (ssh / "sshd_config").write_text(config)
        (ssh / "ssh_config").write_text(_SSH_CONFIG.format(mark=MARK_VARIABLE))
        (ssh / "authorized_keys").write_text(public)
        shutil.copy(user_key, ssh / "user_key")
        (host.folder / "hosts").write_text(names)
        # sshd lets nobody into an account that is locked, as root's is on many systems.
        (host.folder / "shadow").write_text("root:*:19000:0:99999:7:::\n")
    for host in hosts:
        (host.folder / "ssh" / "ssh_known_hosts").write_text(known_hosts)


def start(host: Host) -> None:
    """Start the host's first process, which stays when this process ends."""
    inside = ("nsenter", f"--net={NAMESPACES / host.namespace}")
    apart = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")
    script = ("sh", "-c", _FIRST_PROCESS, "sh", host.name, str(host.folder))
    with (host.folder / "log").open("wb") as log:
        subprocess.Popen(
            [*inside, *apart, *script],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": search_path()},
            start_new_session=True,
            cwd="/",
        )


def wait_until_ready(host: Host) -> None:
    """Wait until the host's sshd listens.

    Raises:
        ClusterError: it has ended, or does not listen in time; the message has its last words.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        log = (host.folder / "log").read_text(errors="replace")
        if "Server listening" in log:
            return
        if "Cannot bind" in log or (log and first_process(host) is None):
            break
        time.sleep(0.02)
    said = " ".join((host.folder / "log").read_text(errors="replace").split())
    raise ClusterError(f"{host.name} did not start: {said or 'its sshd says nothing'}")


def first_process(host: Host) -> int | None:
    """Return the number, on this machine, of the process that is number 1 on the host."""
    for pid in pids_in(host.namespace):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        numbers = next(line for line in status.splitlines() if line.startswith("NSpid:"))
        if numbers.split()[2:] == ["1"]:
            return pid
    return None


def end_processes(namespace: str) -> None:
    """End every process of a host at once.

    Raises:
        ClusterError: one does not end.
    """
    deadline = time.monotonic() + END_SECONDS
    while pids := pids_in(namespace):
        for pid in pids:
            try:
                psutil.Process(pid).kill()
            except psutil.NoSuchProcess:
                continue
        if time.monotonic() > deadline:
            raise ClusterError(f"processes of {namespace} do not end: {pids}")
        time.sleep(0.02)
