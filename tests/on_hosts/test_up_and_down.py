"""Hosts come up, say so, and go without a trace, also after a crash."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from machine import nested_processes, snapshot
from watching import HVDCOURSE, wait_for

from hvdcourse.cluster import cluster
from hvdcourse.cluster.host import end_processes, first_process, start, wait_until_ready
from hvdcourse.cluster.plan import FOLDER, NAMESPACES

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def said(done: subprocess.CompletedProcess, status: int) -> str:
    """Return the one error line of a command that ended with this status."""
    assert done.returncode == status
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def test_hosts_have_names_addresses_and_slots_and_know_each_other(command):
    done = command("up", "--hosts", "3", "--slots", "2,1,1")
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(command("status", "--json").stdout)["hosts"]
    rows = [(row["name"], row["slots"], row["running"]) for row in shown]
    assert rows == [("node1", 2, True), ("node2", 1, True), ("node3", 1, True)]
    assert len({row["address"] for row in shown}) == 3
    to_all = "for host in node1 node2 node3; do ssh $host hostname; done"
    for name in ("node1", "node3"):
        done = command("exec", name, "--", "sh", "-c", to_all)
        assert (done.stdout, done.stderr) == ("node1\nnode2\nnode3\n", "")
    assert "the hosts are gone" in command("down").stdout


def test_up_twice_is_up_once(command):
    assert command("up").returncode == 0
    before = [first_process(cluster.find_host(name)) for name in ("node1", "node2")]
    assert command("up").returncode == 0
    assert [first_process(cluster.find_host(name)) for name in ("node1", "node2")] == before
    line = said(command("up", "--hosts", "3"), 1)
    assert "other hosts are up already (2 hosts, slots 2,2, bandwidth not limited)" in line
    assert "hvdcourse cluster down" in line


def test_down_without_hosts_is_no_mistake(command):
    done = command("down")
    assert (done.returncode, done.stdout) == (0, "no hosts were up\n")
    assert command("status").returncode == 1


def test_nothing_is_added_to_the_machines_own_network(command):
    before = snapshot()
    command("up", "--bandwidth", "1gbit")
    during = snapshot()
    for what in ("interfaces", "addresses", "routes", "/etc/hosts", "/etc/netns", "/run/sshd"):
        assert during[what] == before[what]
    new = set(during["namespaces"]) - set(before["namespaces"])
    assert new == {"hvdcourse-switch", "hvdcourse-node1", "hvdcourse-node2"}


def test_sshd_listens_on_its_own_address_only_and_takes_no_password(make_hosts):
    hosts = make_hosts(2)
    listening = cluster.execute(hosts[0], ["cat", "/proc/net/tcp", "/proc/net/tcp6"]).output
    local = [line.split()[1] for line in listening.splitlines() if " 0A " in line]
    assert local == ["0100530A:0016"]
    options = ["-o", "PubkeyAuthentication=no", "-o", "PreferredAuthentications=password"]
    done = cluster.execute(hosts[0], ["ssh", *options, "node2", "true"], must_succeed=False)
    assert "Permission denied (publickey)" in done.output


def test_keys_are_for_root_only(make_hosts):
    (host,) = make_hosts(1)
    key = FOLDER / "ssh" / "user_key"
    assert "PRIVATE KEY" in key.read_text()
    assert subprocess.run([*NOBODY, "cat", key], capture_output=True).returncode != 0
    # On the host itself, other users are kept from it by its own mode.
    inside = [*NOBODY, "cat", "/etc/ssh/user_key"]
    assert not cluster.execute(host, inside, must_succeed=False).ok


@pytest.mark.parametrize(
    "reached",
    [
        "the folder",
        "hvdcourse-switch",
        "hvdcourse-node1",
        "a first process",
        "hvdcourse-node4",
    ],
)
def test_after_up_was_killed_down_leaves_nothing(reached, command):
    """``nothing_changed``, which ``command`` needs, looks at the machine afterwards."""
    process = subprocess.Popen(
        [HVDCOURSE, "cluster", "up", "--hosts", "4"], stdout=subprocess.DEVNULL
    )

    def there() -> bool:
        if reached == "the folder":
            return FOLDER.exists()
        if reached == "a first process":
            return (FOLDER / "node1.log").exists()
        return (NAMESPACES / reached).exists()

    while process.poll() is None and not there():
        time.sleep(0.001)
    process.kill()
    process.wait()
    again = command("up", "--hosts", "4")
    assert again.returncode == 0 or "run `hvdcourse cluster down`" in said(again, 1)
    assert command("down").returncode == 0


def test_ctrl_c_takes_back_what_was_made(nothing_changed):
    process = subprocess.Popen(
        [HVDCOURSE, "cluster", "up", "--hosts", "4"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert wait_for(lambda: (NAMESPACES / "hvdcourse-node1").exists())
    process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0
    assert b"Traceback" not in process.stderr.read()


def test_two_ups_at_once_make_one_set_of_hosts(command):
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda _: command("up", "--hosts", "2"), range(3)))
    assert [one.returncode for one in done] == [0, 0, 0]
    assert json.loads(command("status", "--json").stdout)["up"]


def test_what_a_crash_has_left_is_replaced(command):
    subprocess.run(["ip", "netns", "add", "hvdcourse-node7"], check=True)
    FOLDER.mkdir()
    assert command("up").returncode == 0
    assert {path.name for path in NAMESPACES.iterdir()} >= {"hvdcourse-node1", "hvdcourse-node2"}
    assert not (NAMESPACES / "hvdcourse-node7").exists()


def test_a_host_that_ended_is_noticed(command):
    command("up")
    os.kill(first_process(cluster.find_host("node2")), signal.SIGKILL)
    assert wait_for(lambda: first_process(cluster.find_host("node2")) is None)
    assert "node2  10.83.0.2  slots 2  not running" in command("status").stdout
    assert "are not whole; run `hvdcourse cluster down`" in said(command("up"), 1)
    assert "node2 is not running" in said(command("exec", "node2", "--", "true"), 1)


def test_a_port_that_is_taken_is_said(make_hosts):
    (host,) = make_hosts(1)
    start(host)
    with pytest.raises(
        cluster.ClusterError, match=r"node1 did not start: .*Address already in use"
    ):
        wait_until_ready(host)


def test_hosts_go_when_the_block_fails(nothing_changed):
    def fail() -> None:
        with cluster.hosts(2) as hosts:
            assert first_process(hosts[1]) is not None
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert cluster.status()["hosts"] == []


def started(code: str) -> subprocess.Popen:
    """Start a process that makes hosts for a block of code."""
    code = f"from hvdcourse.cluster import cluster\nwith {code}"
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_hosts_end_with_the_process_that_made_them(number, nothing_changed):
    process = started("cluster.hosts(2): print('up', flush=True); input()")
    assert process.stdout.readline() == b"up\n"
    assert nested_processes()
    process.send_signal(number)
    process.communicate(timeout=20)
    assert wait_for(lambda: not nested_processes())
    with cluster.hosts(3) as hosts:
        assert all(first_process(host) for host in hosts)


@pytest.mark.parametrize(
    "reached", ["hvdcourse-switch", "hvdcourse-node1", "hvdcourse-node3", "a first process"]
)
def test_hosts_end_with_the_process_that_is_making_them(reached, nothing_changed):
    process = started("cluster.hosts(4): input()")
    first_log = FOLDER / "node1.log"
    path = first_log if reached == "a first process" else NAMESPACES / reached
    while process.poll() is None and not path.exists():
        time.sleep(0.001)
    process.kill()
    process.communicate()
    assert wait_for(lambda: not nested_processes())
    cluster.down()


def test_a_host_ends_whose_maker_ends_before_it_can_be_bound(tmp_path, monkeypatch, make_hosts):
    """The worst case: unshare is killed between its fork and the prctl(2) of its child."""
    (host,) = make_hosts(1)
    forked, go_on = tmp_path / "forked", tmp_path / "go_on"
    os.mkfifo(go_on)
    late = f"""#!/bin/sh -e
    while [ "$1" != sh ]; do [ "$1" = --kill-child ] || options="$options $1"; shift; done
    wait='echo > {forked}; read -r _ < {go_on}; "$@"'
    exec {shutil.which("unshare")} $options sh -c "$wait" sh "$@"
    """
    (tmp_path / "unshare").write_text(late)
    (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    end_processes()
    ended = set(psutil.Process().children())
    start(host)
    assert wait_for(forked.exists)
    (unshare,) = set(psutil.Process().children()) - ended
    unshare.kill()
    unshare.wait()
    assert nested_processes()
    go_on.write_text("\n")
    assert wait_for(lambda: not nested_processes())


def test_other_hosts_than_those_that_are_up_are_refused(nothing_changed):
    process = started("cluster.hosts(2): print('up', flush=True); input()")
    assert process.stdout.readline() == b"up\n"
    with (
        pytest.raises(cluster.ClusterError, match=f"up already .* of process {process.pid}"),
        cluster.hosts(3),
    ):
        pass
    assert cluster.status()["up"]
    process.communicate(b"\n", timeout=20)
    assert process.returncode == 0
    assert not FOLDER.exists()


def test_a_block_does_not_remove_hosts_that_have_taken_the_place_of_its_own(make_hosts):
    with cluster.hosts(2):
        cluster.down()
        make_hosts(2)
    assert cluster.status()["up"]


def test_an_inner_block_leaves_the_hosts_to_the_outer_one(nothing_changed):
    with cluster.hosts(2):
        with cluster.hosts(2):
            pass
        assert cluster.status()["up"]
    assert not FOLDER.exists()


def test_a_block_leaves_the_hosts_that_it_found(make_hosts):
    make_hosts(2)
    with cluster.hosts(2) as hosts:
        before = first_process(hosts[1])
    assert first_process(hosts[1]) == before is not None


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("up --hosts 0", "hosts must be a whole number from 1 to 16; got '0'"),
        ("up --hosts two", "hosts must be a whole number from 1 to 16; got 'two'"),
        ("up --slots 0", "slots must be a whole number from 1 to 64; got '0'"),
        ("up --slots 2,1,1", "slots must be one number, or one for each of the 2 hosts"),
        ("up --bandwidth fast", "bandwidth must be a rate from 1mbit up"),
        ("exec node1 -- true", "no hosts are up; run `hvdcourse cluster up` first"),
    ],
)
def test_each_mistake_gives_one_clear_line_and_status_2(arguments, why, command):
    assert why in said(command(*arguments.split()), 2)


@pytest.mark.parametrize("arguments", ["up", "status", "exec node1 -- true", "down"])
def test_without_root_it_says_so(arguments, command):
    assert "needs root" in said(command(*arguments.split(), prefix=NOBODY), 1)


@pytest.mark.parametrize(
    ("program", "package"), [("sbin/ip", "iproute2"), ("sbin/sshd", "openssh-server")]
)
def test_a_missing_program_is_named_with_its_package(program, package, command):
    hide = f"for f in /{program} /usr/{program} /usr/bin/ip; do "
    hide += f"case $f in *{program.split('/')[1]}) [ -e $f ] && mount --bind /dev/null $f;; esac; "
    hide += 'done; exec "$@"'
    line = said(command("up", prefix=("unshare", "--mount", "sh", "-c", hide, "sh")), 1)
    assert f"{program.split('/')[1]} not found" in line
    assert f"apt-get install {package}" in line


def test_a_container_without_the_right_is_told(command):
    dropped = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    line = said(command("up", prefix=dropped), 1)
    assert "no network namespaces here; a container needs --privileged" in line
