"""However a run ends, it says where the ranks were, and nothing of it is left."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import psutil
import pytest
from starts import Start, every_start, quick_starts
from watching import HVDCOURSE, START_SECONDS, started_processes, wait_for

from hvdcourse.launch import run as launch
from hvdcourse.launch.run import run_quickly

pytestmark = [
    pytest.mark.ranks,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.measured,
]
both_backends = pytest.mark.parametrize("backend", ["gloo", "mpi"])

# Each rank says that it runs by making a file, and then does what RANK_1 or the others do.
SCRIPT = """
    import os, pathlib, signal, subprocess, sys, time
    from hvdcourse.rank.place import Place
    rank = Place.from_environment().rank
    def ready(what):
        pathlib.Path(__file__).with_name(what).write_text(str(os.getpid()))
"""


@pytest.fixture
def sleeping(script):
    """Return a script whose ranks sleep; they have begun once ready_0 and ready_1 are there."""
    return script(SCRIPT + "    ready(f'ready_{rank}')\n    time.sleep(600)\n")


def both_ranks_sleep(path: Path) -> bool:
    return all(path.with_name(f"ready_{rank}").exists() for rank in (0, 1))


def start_command(path: Path, backend: str) -> subprocess.Popen:
    """Start ``hvdcourse run`` as a terminal does, in a process group of its own."""
    command = [HVDCOURSE, "run", str(path), "-np", "2", "--backend", backend]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    assert wait_for(lambda: both_ranks_sleep(path), START_SECONDS)
    return process


STUBBORN_RANK_0 = """
    if rank == 0:
        print("so far", end="", flush=True)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
"""


@every_start
def test_at_the_time_limit_everything_ends_and_what_ranks_did_is_told(start, script):
    """Also a rank that ignores SIGTERM, and a line that had not ended."""
    result = start.until_the_limit(script(SCRIPT + STUBBORN_RANK_0), 2)
    assert (result.reason, result.exit_status) == ("time limit", 124)
    text = result.explain()
    assert text.startswith(f"The run reached its time limit of {result.timeout:g} s and was ended.")
    assert all(f"Rank {rank} was at script.py line 10: time.sleep(600)" in text for rank in (0, 1))
    assert result.output == [["so far"], []]
    assert [rank.describe_end() for rank in result.ranks] == ["did not end by itself"] * 2


RANK_1_SLEEPS = """
    import time
    import horovod.tensorflow as hvd
    import tensorflow as tf
    hvd.init()
    if hvd.rank() == 1:
        time.sleep(600)
    hvd.allreduce(tf.constant(1.0), name="mean")
"""


@every_start
def test_a_rank_asleep_before_a_collective_ends_the_run_and_both_places_are_named(start, script):
    result = start(script(RANK_1_SLEEPS), 2, standstill=3, timeout=90, must_succeed=False)
    text = result.explain()
    if start.backend == "gloo":
        assert (result.reason, result.exit_status) == ("standstill", 124)
        said = r"The run was ended: no rank computed or printed anything for (\d+) s\."
        assert int(re.match(said, text)[1]) >= 3
    else:  # Horovod's own stall check ends it
        assert (result.reason, result.exit_status) == ("failed", 1)
        assert text.startswith("No rank failed by itself: the ranks did not all come to the same")
        assert any("Missing ranks" in line for line in result.ranks[0].errors)
    assert "Rank 0 was waiting in allreduce, script.py line 7: hvd.allreduce(" in text
    assert "Rank 1 was at script.py line 6: time.sleep(600)" in text


def test_horovods_own_stall_check_says_nothing_over_gloo(script):
    """Lessons 3 and 6 state it of Horovod 0.28.1; over MPI it tells."""
    settings = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "1", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "2"}
    options = {"standstill": 8, "timeout": 90, "must_succeed": False}
    result = run_quickly(script(RANK_1_SLEEPS), 2, environment=settings, **options)
    assert not any("Missing ranks" in line for line in result.ranks[0].errors)
    assert result.reason == "standstill"


def test_a_rank_that_computes_or_prints_does_not_stand_still(script):
    path = script("""
        import time
        end = time.time() + 3
        while time.time() < end:
            pass
        for _ in range(6):
            time.sleep(0.5)
            print("still here")
    """)
    assert run_quickly(path, 1, standstill=2, timeout=60).ok


def test_ranks_may_wait_as_long_as_they_have_worked(script):
    """So long may the end of a training wait for the tuner of tf.data, which sleeps."""
    path = script("""
        import time
        end = time.time() + 5
        while time.time() < end:
            pass
        time.sleep(4)
    """)
    assert run_quickly(path, 1, standstill=1, timeout=60, must_succeed=False).ok


@pytest.fixture
def no_core_is_free():
    spin = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spin) for _ in range(2 * os.cpu_count())]
    yield
    for other in others:
        other.kill()
        other.wait()


@pytest.mark.usefixtures("no_core_is_free")
def test_ranks_that_get_no_core_do_not_stand_still(script):
    path = script("import time; time.sleep(6); print('at last')")
    assert run_quickly(path, 2, standstill=2, timeout=60, must_succeed=False).ok


@pytest.mark.usefixtures("no_core_is_free")
def test_a_standstill_is_seen_also_where_no_core_is_free(script):
    path = script("import time; time.sleep(600)")
    result = run_quickly(path, 2, standstill=2, timeout=100, must_succeed=False)
    assert result.reason == "standstill"


@every_start
def test_a_stopped_rank_is_gone_after_the_time_limit(start, script):
    stop = "    ready('ready_1')\n    os.kill(os.getpid(), signal.SIGSTOP)\n    time.sleep(600)"
    path = script(f"{SCRIPT}    if not rank: time.sleep(600)\n{stop}")
    # A stopped rank cannot say where it is.
    result = start.until_the_limit(path, 2, lambda _: path.with_name("ready_1").exists())
    assert result.reason == "time limit"


GRANDCHILD = (
    SCRIPT
    + """
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    child = subprocess.Popen(sleeper, start_new_session=True)
    ready(f"ready_{rank}")
"""
)


@every_start
def test_a_grandchild_in_its_own_session_is_gone_after_a_good_run(start, script):
    path = script(GRANDCHILD)
    assert start(path, 2, timeout=60).ok
    assert both_ranks_sleep(path)
    assert not started_processes()


@every_start
def test_a_grandchild_in_its_own_session_is_gone_after_a_failure(start, script):
    path = script(GRANDCHILD + "    sys.exit(4 if rank else 0)")
    assert start(path, 2, must_succeed=False).exit_status == 4
    assert not started_processes()


@both_backends
@pytest.mark.parametrize("signal_all", [False, True], ids=["process", "terminal"])
def test_ctrl_c_ends_the_command_with_130_and_leaves_nothing(backend, signal_all, sleeping):
    process = start_command(sleeping, backend)
    (os.killpg if signal_all else os.kill)(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert not started_processes()


@both_backends
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_killed_command_leaves_nothing(backend, number, sleeping, nothing_left):
    process = start_command(sleeping, backend)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert wait_for(lambda: not started_processes())
    assert not list(nothing_left.glob("hvdcourse-*"))


def kill_kernel_of(start: Start, path: Path) -> None:
    """Kill a process that runs the script, once both ranks have begun."""
    name = start.function.__name__
    code = (
        f"import hvdcourse.launch.run as r; r.{name}({str(path)!r}, 2, backend={start.backend!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    assert wait_for(lambda: both_ranks_sleep(path), START_SECONDS)
    process.kill()
    process.wait()


@every_start
def test_a_dead_kernel_leaves_nothing(start, script, nothing_left):
    path = script(GRANDCHILD + "    time.sleep(600)")
    kill_kernel_of(start, path)
    assert wait_for(lambda: not started_processes())
    assert not list(nothing_left.glob("hvdcourse-*"))


@quick_starts
def test_a_dead_kernel_leaves_nothing_of_ranks_that_print_all_the_time(start, script):
    path = script(SCRIPT + "    ready(f'ready_{rank}')\n    while True: print('x' * 500)")
    kill_kernel_of(start, path)
    assert wait_for(lambda: not started_processes())


@both_backends
def test_a_killed_supervisor_takes_its_ranks_with_it_and_is_told_of(backend, sleeping):
    process = start_command(sleeping, backend)
    children = psutil.Process(process.pid).children()
    (supervisor,) = (child for child in children if "spawn_main" in " ".join(child.cmdline()))
    supervisor.kill()
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "error: The run did not end well: the launcher was killed." in errors
    assert wait_for(lambda: not started_processes())


def test_a_reader_that_goes_away_ends_the_command_without_a_word(script):
    path = script(SCRIPT + "    while True:\n        print('more', flush=True), time.sleep(0.01)\n")
    command = [HVDCOURSE, "run", str(path), "-np", "1"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(START_SECONDS) == 1
        assert process.stderr.read() == ""


def test_the_end_of_a_supervisor_is_seen_while_others_hold_its_connection():
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=int)
    process.start()
    with ours, theirs:
        assert list(launch.events_from(ours, process)) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_check_leaves_nothing(number, tmp_path, nothing_left):
    (tmp_path / "ring_allreduce.py").write_text(dedent(SCRIPT) + "ready('began'), time.sleep(600)")
    command = [HVDCOURSE, "check", "ring_allreduce", "--folder", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    assert wait_for((tmp_path / "began").exists, START_SECONDS)
    assert list(nothing_left.glob("hvdcourse-check-*"))
    process.send_signal(number)
    assert process.wait(START_SECONDS) == 128 + number
    assert not list(nothing_left.glob("hvdcourse-*"))


@pytest.mark.parametrize("fork", ["0", "1"])
def test_a_stuck_supervisor_is_killed_after_the_time_limit(fork, script, monkeypatch):
    monkeypatch.setattr(launch, "LATE_SECONDS", 1)
    monkeypatch.setenv("HVDCOURSE_FORK", fork)
    stop = "    os.kill(os.getppid(), signal.SIGSTOP)\n    time.sleep(600)\n"
    limit, result = 2, None
    while result is None or result.reason == "time limit":  # No rank had begun by then.
        result = run_quickly(script(SCRIPT + stop), np=2, timeout=limit, must_succeed=False)
        limit *= 2
    assert result.reason == "the launcher was killed"


def test_a_failure_of_the_launcher_itself_is_told_with_its_traceback(script, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {100_000})
    result = run_quickly(script("print()"), 1, must_succeed=False)
    assert result.reason == "the launcher failed"
    assert "OSError: [Errno 22] Invalid argument" in result.explain()


def test_a_killed_mpirun_takes_its_ranks_with_it(sleeping):
    process = start_command(sleeping, "mpi")
    (mpirun,) = (one for one in started_processes() if one.cmdline()[0] == "mpirun")
    mpirun.kill()
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert not started_processes()


def test_the_command_has_the_exit_status_of_the_rank(script):
    path = script("import sys; sys.exit(3)")
    done = subprocess.run([HVDCOURSE, "run", path, "-np", "2"], capture_output=True, text=True)
    assert done.returncode == 3
    assert "\nerror: Rank" in done.stderr
