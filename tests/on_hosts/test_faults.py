"""What goes wrong between hosts ends by itself, soon, with a reason, and leaves nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from machine import nested_processes
from watching import HVDCOURSE, wait_for

from hvdcourse.cluster import cluster
from hvdcourse.cluster.host import first_process
from hvdcourse.cluster.plan import FOLDER

HELLO = "import horovod.tensorflow as hvd; hvd.init(); print('started', hvd.rank(), flush=True)\n"
FOREVER = HELLO + "import time\nwhile True: time.sleep(1)\n"


def launched(
    hosts: list[cluster.Host], where: dict[str, int], backend: str, script: str
) -> cluster.Completed:
    """Start a rank a slot from the first host; return what came of it, which must be a failure."""
    if backend == "mpirun":
        command = cluster.plain_mpirun_command(where, script=[script])
    else:
        command = cluster.horovodrun_command(where, None, backend, [script])
    done = cluster.execute(hosts[0], command, timeout=120, must_succeed=False)
    assert not done.timed_out, "it did not end by itself"
    assert done.returncode != 0
    return done


@pytest.mark.parametrize("backend", ["gloo", "mpirun"])
def test_a_name_that_does_not_resolve(backend, make_hosts, run_script):
    hosts = make_hosts(2)
    done = launched(hosts, {"node1": 1, "node7": 1}, backend, run_script(HELLO))
    assert "Could not resolve hostname node7" in done.output
    assert done.seconds < 60


@pytest.mark.parametrize("backend", ["gloo", "mpirun"])
def test_an_address_that_nobody_has(backend, make_hosts, run_script):
    hosts = make_hosts(2)
    done = launched(hosts, {"node1": 1, "10.83.0.99": 1}, backend, run_script(HELLO))
    assert "No route to host" in done.output
    assert done.seconds < 90


def test_a_port_where_no_sshd_listens(make_hosts, run_script):
    hosts = make_hosts(2)
    command = cluster.horovodrun_command(hosts, 4, script=[run_script(HELLO)])
    command[1:1] = ["-p", "2222"]
    done = cluster.execute(hosts[0], command, timeout=60, must_succeed=False)
    assert (done.returncode, done.timed_out) == (1, False)
    assert "Connection refused" in done.output


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_a_host_whose_link_is_down(backend, make_hosts, run_script):
    hosts = make_hosts(2)
    link = ["ip", "-n", hosts[1].namespace, "link", "set", "hvd0", "down"]
    subprocess.run(link, check=True)
    done = launched(hosts, {"node1": 1, "node2": 1}, backend, run_script(HELLO))
    assert "No route to host" in done.output
    assert done.seconds < 90


@pytest.mark.parametrize("backend", ["gloo", "mpi", "mpirun"])
def test_a_key_that_is_refused(backend, make_hosts, run_script):
    hosts = make_hosts(2)
    (FOLDER / "ssh" / "authorized_keys").write_text("")
    done = launched(hosts, {"node1": 1, "node2": 1}, backend, run_script(HELLO))
    assert "Permission denied (publickey)" in done.output
    assert done.seconds < 60


@pytest.mark.parametrize("backend", ["gloo", "mpi", "mpirun"])
def test_a_host_without_the_courses_environment(backend, make_hosts, run_script, monkeypatch):
    hosts = make_hosts(2)
    # Nor with another's environment, which a terminal may have in its PATH.
    monkeypatch.setenv("PATH", os.pathsep.join([f"{sys.prefix}/bin", "/usr/bin", "/bin"]))
    hide = ["mount", "-t", "tmpfs", "tmpfs", sys.prefix]
    pid = first_process(hosts[1])
    subprocess.run(["nsenter", f"--target={pid}", "--mount", "--", *hide], check=True)
    done = launched(hosts, {"node1": 1, "node2": 1}, backend, run_script(HELLO))
    # Over Gloo the system's own Python is found there, if it has one.
    reasons = ("not found", "No such file", "No module named 'horovod'")
    assert any(reason in done.output for reason in reasons)
    assert done.seconds < 90


def running_ranks() -> int:
    """Return how many ranks run on the hosts, launchers left out."""
    count = 0
    for pid in nested_processes():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except OSError:
            continue
        count += words[0].endswith("python") and words[1].endswith("script.py")
    return count


@pytest.fixture
def going_on(make_hosts, run_script, tmp_path):
    """Start, by exec, four ranks on two hosts that never end; returns the process of exec."""

    def start(backend: str) -> subprocess.Popen:
        hosts = make_hosts(2)
        command = cluster.horovodrun_command(hosts, 4, backend, [run_script(FOREVER)])
        output = (tmp_path / "output").open("w")
        process = subprocess.Popen(
            [HVDCOURSE, "cluster", "exec", "node1", "--", *command],
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        shown = tmp_path / "output"
        assert wait_for(lambda: shown.read_text().count("started") == 4, 120), shown.read_text()
        assert running_ranks() == 4
        return process

    return start


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_ctrl_c_during_a_run_ends_all_ranks(backend, going_on):
    process = going_on(backend)
    # A terminal sends it to all processes in the foreground.
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 128 + signal.SIGINT
    assert not running_ranks()


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_down_during_a_run_ends_all_ranks(backend, going_on):
    process = going_on(backend)
    assert cluster.down()
    assert not running_ranks()
    assert process.wait(30) == 128 + signal.SIGKILL


def test_a_host_that_ends_during_a_run_ends_the_run(going_on):
    process = going_on("gloo")
    os.kill(first_process(cluster.find_host("node2")), signal.SIGKILL)
    assert process.wait(60) != 0
    assert not running_ranks()
