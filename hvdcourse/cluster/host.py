"""One host: its settings and keys, and the sshd that is its first process.

A host has its own network, name, processes, /run and /dev/shm, and its own /etc/hosts and
/etc/ssh. All else, your home and this course among it, is the machine's, as a cluster has it on
its shared file system. When the first process ends, the kernel ends all others of that host.
"""

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from hvdcourse.cluster.network import all_processes, command, processes_in, search_path
from hvdcourse.cluster.plan import FOLDER, NAMESPACES, ClusterError, Host
from hvdcourse.machine.processes import end_all

START_SECONDS = 20.0
# All that runs on a host is root's, and shall leave no bytecode of root's in a learner's folders.
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
# By this variable all processes of one command are known, on every host that it reaches.
MARK_VARIABLE = "HVDCOURSE_EXECUTION"

# What a host runs first; its arguments: its name, its address, and the folder of settings.
_FIRST_PROCESS = """
set -e
# Should unshare have been killed before this process asked for its end's signal, nothing is left.
read -r state <&3
case "$state" in *") "[ZX]*) exit 1;; esac
exec 3<&-
hostname "$1"
mount --bind "$3/hosts" /etc/hosts
mount --bind "$3/shadow" /etc/shadow
mount --bind "$3/ssh" /etc/ssh
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mkdir /run/sshd
exec "$(command -v sshd)" -D -e -f /etc/ssh/sshd_config -o ListenAddress="$2"
"""
# Should the maker have ended before setpriv asked for its end's signal, nothing is started.
_WHILE_MAKER_LIVES = '[ "$PPID" = "$0" ] && exec "$@"'
# unshare keeps this shell's number, and its child, which sees another /proc, reads its state here.
_WITH_STATE = 'exec 3<"/proc/$$/stat" "$@"'

_SSHD_CONFIG = f"""\
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PidFile none
MaxStartups 100
AcceptEnv {MARK_VARIABLE}
SetEnv {NO_BYTECODE}=1
"""

# The one key is accepted by all hosts, and all hosts' keys are known: nobody is asked anything.
_SSH_CONFIG = f"""\
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
    SendEnv {MARK_VARIABLE}
"""


def make_key(name: str) -> str:
    """Make a throw-away key pair without a passphrase, and return the public part."""
    path = FOLDER / "ssh" / name
    command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "hvdcourse", "-f", str(path))
    return path.with_suffix(".pub").read_text()


def write_settings(hosts: list[Host]) -> None:
    """Make the keys, and write what all hosts have in their /etc."""
    ssh = FOLDER / "ssh"
    ssh.mkdir()
    names = "".join(f"{host.address} {host.name}\n" for host in hosts)
    (FOLDER / "hosts").write_text("127.0.0.1 localhost\n" + names)
    # sshd lets nobody into an account that is locked, as root's is on many systems.
    (FOLDER / "shadow").write_text("root:*:19000:0:99999:7:::\n")
    (ssh / "authorized_keys").write_text(make_key("user_key"))
    (ssh / "ssh_known_hosts").write_text(f"* {make_key('host_key')}")
    (ssh / "sshd_config").write_text(_SSHD_CONFIG)
    (ssh / "ssh_config").write_text(_SSH_CONFIG)


def start(host: Host, maker: int | None = None) -> None:
    """Start the host's first process, which ends with its maker; without one it stays.

    The maker is this process. Strictly it is this thread, prctl(2).
    """
    bound = ("setpriv", "--pdeathsig", "KILL", "sh", "-c", _WHILE_MAKER_LIVES, str(maker))
    watched = ("sh", "-c", _WITH_STATE, "sh")
    inside = ("nsenter", f"--net={NAMESPACES / host.namespace}")
    apart = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")
    script = ("sh", "-c", _FIRST_PROCESS, "sh", host.name, host.address, str(FOLDER))
    with host.log.open("wb") as log:
        subprocess.Popen(
            [*(bound if maker is not None else ()), *watched, *inside, *apart, *script],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": search_path()},
            start_new_session=True,
            cwd="/",
        )


def is_ready(host: Host) -> bool:
    """Tell whether the host's sshd listens."""
    return "Server listening" in words_of(host) and first_process(host) is not None


def words_of(host: Host) -> str:
    """Return what the host's first process has printed."""
    return " ".join(host.log.read_text(errors="replace").split()) if host.log.exists() else ""


def wait_until_ready(host: Host) -> None:
    """Wait until the host's sshd listens. Raises ClusterError, with its last words, if not."""
    deadline = time.monotonic() + START_SECONDS
    while not is_ready(host):
        words = words_of(host)
        has_ended = bool(words) and first_process(host) is None
        if has_ended or "Cannot bind" in words or time.monotonic() > deadline:
            raise ClusterError(f"{host.name} did not start: {words or 'its sshd says nothing'}")
        time.sleep(0.02)


def first_process(host: Host) -> int | None:
    """Return the number, on this machine, of the process that is number 1 on the host."""
    for process in processes_in(host.namespace):
        with suppress(FileNotFoundError, ProcessLookupError):
            status = Path(f"/proc/{process.pid}/status").read_text()
            numbers = status.partition("NSpid:")[2].partition("\n")[0].split()
            if numbers[1:] == ["1"]:
                return process.pid
    return None


def end_processes() -> None:
    """End every process of all hosts at once. Raises ClusterError where one does not end."""
    left = end_all(all_processes, grace=0)
    if left:
        numbers = ", ".join(str(process.pid) for process in left)
        raise ClusterError(f"processes of the hosts do not end: {numbers}")
