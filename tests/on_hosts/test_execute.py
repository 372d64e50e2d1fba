"""Commands on hosts: their output at once, their exit status, and their end on every host."""

import os
import signal
import subprocess
import threading
import time

import pytest
from machine import nested_processes
from watching import HVDCOURSE, wait_for

from hvdcourse.cluster import cluster

# A launcher in small: it waits for what it has started on two hosts.
ON_TWO_HOSTS = "ssh node2 sleep 876 & sleep 876 & wait"


def sleepers() -> list[str]:
    """Return the sleeping processes on the hosts."""
    return [name for name in nested_processes().values() if name == "sleep"]


def test_output_comes_at_once_and_both_streams_are_in_it(make_hosts, capsys, tmp_path):
    (host,) = make_hosts(1)
    go_on = tmp_path / "go_on"
    os.mkfifo(go_on)
    command = f"echo a; echo b >&2; cat {go_on}"
    seen = []
    thread = threading.Thread(target=lambda: cluster.execute(host, ["sh", "-c", command]))
    thread.start()
    assert wait_for(lambda: seen.append(capsys.readouterr().out) or "b\n" in "".join(seen))
    go_on.write_text("c\n")
    thread.join()
    seen.append(capsys.readouterr().out)
    assert "".join(seen) == f"node1$ sh -c '{command}'\na\nb\nc\n"


def test_the_folder_and_the_environment_are_the_callers(make_hosts, tmp_path, monkeypatch):
    (host,) = make_hosts(1)
    monkeypatch.chdir(tmp_path)
    done = cluster.execute(host, ["sh", "-c", "pwd; echo $MORE"], environment={"MORE": "said"})
    assert done.output == f"{tmp_path}\nsaid\n"


def test_a_failure_is_raised_with_its_status_or_returned(make_hosts):
    (host,) = make_hosts(1)
    with pytest.raises(cluster.CommandFailed, match=r"on node1, `sh -c 'exit 3'` .* status 3"):
        cluster.execute(host, ["sh", "-c", "exit 3"])
    done = cluster.execute(host, ["sh", "-c", "kill -9 $$"], must_succeed=False)
    assert done.returncode == 128 + signal.SIGKILL
    assert cluster.execute(host, ["no-such-program"], must_succeed=False).returncode == 127


def test_at_the_time_limit_everything_ends_on_every_host(make_hosts):
    hosts = make_hosts(2)
    done = cluster.execute(hosts[0], ["sh", "-c", ON_TWO_HOSTS], timeout=2, must_succeed=False)
    assert (done.timed_out, done.returncode) == (True, 124)
    assert done.seconds >= 2
    assert not sleepers()


def test_what_ignores_being_asked_is_ended_all_the_same(make_hosts):
    (host,) = make_hosts(1)
    stubborn = ["sh", "-c", "trap '' TERM HUP; sleep 876; sleep 876"]
    cluster.execute(host, stubborn, timeout=1, must_succeed=False)
    assert not sleepers()


def test_what_a_command_leaves_running_is_ended(make_hosts):
    (host,) = make_hosts(1)
    done = cluster.execute(host, ["sh", "-c", "setsid sleep 876 >/dev/null 2>&1 & echo gone"])
    assert done.output == "gone\n"
    assert not sleepers()


def test_one_command_does_not_end_another(make_hosts):
    (host,) = make_hosts(1)
    other = subprocess.Popen([HVDCOURSE, "cluster", "exec", "node1", "--", "sleep", "876"])
    try:
        assert wait_for(sleepers)
        cluster.execute(host, ["sleep", "5"], timeout=1, must_succeed=False)
        assert len(sleepers()) == 1
    finally:
        other.terminate()
        assert other.wait(20) == 128 + signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_exec_ends_the_command_on_every_host(number, make_hosts):
    make_hosts(2)
    words = [HVDCOURSE, "cluster", "exec", "node1", "--", "sh", "-c", ON_TWO_HOSTS]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert wait_for(lambda: len(sleepers()) == 2)
    process.send_signal(number)
    assert process.wait(20) == 128 + number
    assert "Traceback" not in process.stderr.read()
    assert not sleepers()


def test_a_second_ctrl_c_does_not_leave_what_the_first_was_ending(make_hosts):
    make_hosts(1)
    stubborn = ["sh", "-c", "trap '' TERM HUP INT; sleep 876; sleep 876"]
    words = [HVDCOURSE, "cluster", "exec", "node1", "--", *stubborn]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert wait_for(sleepers)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 128 + signal.SIGINT
    assert "Traceback" not in process.stderr.read()
    assert not sleepers()


def test_a_killed_exec_takes_its_command_along(make_hosts):
    make_hosts(1)
    words = [HVDCOURSE, "cluster", "exec", "node1", "--", "sleep", "876"]
    process = subprocess.Popen(words)
    assert wait_for(sleepers)
    process.kill()
    process.wait()
    assert wait_for(lambda: not sleepers())


def test_exec_passes_on_input_output_and_status(make_hosts):
    make_hosts(1)
    words = [HVDCOURSE, "cluster", "exec", "node1", "--", "sh", "-c", "cat; hostname >&2; exit 5"]
    done = subprocess.run(words, input="in\n", capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr, done.returncode) == ("in\n", "node1\n", 5)


def test_exec_ends_at_its_time_limit(command):
    command("up", "--hosts", "1")
    done = command("exec", "--timeout", "1", "node1", "--", "sleep", "876")
    assert done.returncode == 124
    assert "on node1, `sleep 876` was ended at its time limit" in done.stderr


def test_down_ends_what_is_going_on(make_hosts):
    make_hosts(2)
    words = [HVDCOURSE, "cluster", "exec", "node1", "--", "sh", "-c", ON_TWO_HOSTS]
    process = subprocess.Popen(words)
    assert wait_for(lambda: len(sleepers()) == 2)
    begin = time.monotonic()
    assert cluster.down()
    assert process.wait(20) == 128 + signal.SIGKILL
    assert time.monotonic() - begin < 10
    assert not sleepers()


def test_with_sudo_no_bytecode_of_roots_is_left_in_the_course(command, project, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("SUDO_UID", "1000")
    monkeypatch.chdir(project)
    script = "from hvdcourse.plots import runs; print(runs.__file__)"
    words = ("python", "-c", script)
    assert command("up").returncode == 0
    assert command("exec", "node1", "--", *words).stdout == f"{project}/hvdcourse/plots/runs.py\n"
    over_ssh = command("exec", "node1", "--", "ssh", "node2", "env").stdout
    assert "PYTHONDONTWRITEBYTECODE=1" in over_ssh
    # Python writes that of the package itself before it can be told.
    assert {path.name.partition(".")[0] for path in project.rglob("*.pyc")} <= {"__init__"}
