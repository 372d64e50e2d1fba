"""Ranks that are forked behave as ranks that are newly started, and nothing outlives its owner."""

import os
import signal
import subprocess
import sys
import threading
from multiprocessing import forkserver

import psutil
import pytest
from watching import START_SECONDS, started, started_processes, wait_for

from hvdcourse.launch.process import can_fork
from hvdcourse.launch.run import run_quickly

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(120), pytest.mark.usefixtures("nothing_left")]


CALLER = "import hvdcourse.launch.run as r, sys; r.run_quickly(sys.argv[1], 2)"
LIGHTLY = "import hvdcourse.launch.process as p; p.PRELOADED = 'light'; "


def server() -> int | None:
    """Return the fork server of this process."""
    return forkserver._forkserver._forkserver_pid


def stop_server() -> None:
    forkserver._forkserver._stop()


@pytest.fixture
def light(script, tmp_path, monkeypatch):
    """Give the test a fork server that lacks TensorFlow: it starts at once, and forks ranks too.

    A process that the test starts has one if it begins with LIGHTLY.
    """
    code = "import sys; import hvdcourse.launch.supervisor; sys.modules['tensorflow'] = None"
    script(code, "light.py")
    # As this is read at a start, no server that runs already fits, nor does this one later.
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("hvdcourse.launch.process.PRELOADED", "light")


def test_the_second_run_uses_the_same_server_and_the_ranks_have_tensorflow(script):
    path = script("""
    import sys
    print("tensorflow" in sys.modules)
    """)
    assert run_quickly(path, 2).output == [["True"]] * 2
    first = server()
    assert run_quickly(path, 2).output == [["True"]] * 2
    assert first is not None
    assert server() == first


def test_a_rank_ends_with_a_pool_of_threads_still_open(script):
    path = script("""
    from concurrent.futures import ThreadPoolExecutor
    POOL = ThreadPoolExecutor(2)
    print(list(POOL.map(str, range(3))))
    """)
    assert run_quickly(path, 2, timeout=60).output == [["['0', '1', '2']"]] * 2


def test_ranks_have_the_environment_and_the_folder_of_the_run(script, tmp_path, monkeypatch):
    path = script("""
    import os
    print(os.environ.get("MINE"), os.environ.get("ADDED"), os.getcwd(), os.environ["TMPDIR"])
    """)
    for mine in ("one", "two"):
        folder = tmp_path / mine
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("MINE", mine)
        result = run_quickly(path, 1, environment={"ADDED": "added"})
        assert result.output == [[f"{mine} added {folder} {os.environ['TMPDIR']}"]]
    monkeypatch.delenv("MINE")
    assert run_quickly(path, 1).output[0][0].startswith("None None ")


def test_ranks_are_started_anew_for_a_variable_that_is_read_at_a_start(script):
    path = script("""
    import sys
    print(sys.flags.hash_randomization, "tensorflow" in sys.modules)
    """)
    assert run_quickly(path, 1).output == [["1 True"]]
    result = run_quickly(path, 1, environment={"PYTHONHASHSEED": "0"})
    assert result.output == [["0 False"]]


def test_every_rank_of_every_run_draws_its_own_random_numbers(script):
    path = script("""
    import random
    import numpy
    import tensorflow as tf
    print(random.random())
    print(numpy.random.rand())
    print(float(tf.random.uniform(())))
    print(float(tf.keras.initializers.GlorotUniform()((1, 1))[0, 0]))
    """)
    numbers = [line for _ in range(2) for rank in run_quickly(path, 2).output for line in rank]
    assert len(set(numbers)) == len(numbers) == 16


ENDS = {
    "sys.exit(3)": (3, "ended with exit status 3"),
    "os.kill(os.getpid(), signal.SIGSEGV)": (-11, "was killed by SIGSEGV"),
    "sys.exit(-1)": (255, "ended with exit status 255"),
    "os._exit(7)": (7, "ended with exit status 7"),
    "raise KeyError('lost')": (1, "KeyError: 'lost'"),
    "sys.exit('not today')": (1, "ended with exit status 1"),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_rank_is_told(end, script):
    path = script(f"""
    import os, signal, sys
    {end}
    """)
    (rank,) = run_quickly(path, 1, must_succeed=False).ranks
    assert (rank.status, rank.describe_end()) == ENDS[end]


def test_threads_and_what_is_registered_for_the_end_are_waited_for(script):
    path = script("""
    import atexit, threading, time
    atexit.register(print, "at the end")
    threading.Thread(target=lambda: (time.sleep(0.5), print("a thread", flush=True))).start()
    print("the script")
    """)
    assert run_quickly(path, 1).output == [["the script", "a thread", "at the end"]]


def test_what_is_printed_without_an_end_of_line_arrives_at_once(script, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # Some machines set it for everybody.
    path = script("""
    import os, signal
    print("so far", end="")
    os.kill(os.getpid(), signal.SIGKILL)
    """)
    result = run_quickly(path, 1, must_succeed=False)
    assert result.output == [["so far"]]


def test_after_an_interrupted_start_of_the_server_the_next_run_is_right(script):
    path = script("    print('here')")
    stop_server()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    with pytest.raises(KeyboardInterrupt):
        run_quickly(path, 1)
    assert run_quickly(path, 1).output == [["here"]]


def test_ctrl_c_while_the_server_imports_tensorflow_shows_no_traceback_of_it(script):
    caller = script(CALLER, "caller.py")
    command = [sys.executable, caller, script("    print('here')")]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert wait_for(lambda: started("multiprocessing.forkserver"), START_SECONDS)
        while process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            wait_for(lambda: process.poll() is not None, 1)
        said = process.stderr.read()
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    assert 'File "<string>"' not in said, "the server was started with -c"


def test_a_process_that_is_asked_for_and_gets_no_work_says_nothing():
    code = """if True:
        import multiprocessing, os
        from multiprocessing import forkserver
        from hvdcourse.launch.process import PRELOADED
        multiprocessing.set_forkserver_preload([PRELOADED])
        ends, work = forkserver.connect_to_new_process([])
        os.close(work)
        forkserver.read_signed(ends)
        print(forkserver.read_signed(ends))
    """
    command = [sys.executable, "-c", code]
    asked = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert (asked.stdout, asked.stderr) == ("1\n", "")


def test_a_killed_supervisor_takes_its_ranks_with_it_and_is_told_of(script, tmp_path):
    path = script(f"""
    import pathlib, time
    pathlib.Path({str(tmp_path)!r}, "ready").touch()
    time.sleep(600)
    """)
    found = []
    thread = threading.Thread(target=lambda: found.append(run_quickly(path, 2, must_succeed=False)))
    thread.start()
    assert wait_for((tmp_path / "ready").exists, START_SECONDS)
    (supervisor,) = (child for child in psutil.Process(server()).children() if child.children())
    supervisor.kill()
    thread.join(30)
    assert found[0].reason == "the launcher was killed"
    assert wait_for(lambda: not started_processes())


def test_a_caller_killed_while_its_server_starts_leaves_nothing(script):
    path = script("    print('here')")
    process = subprocess.Popen([sys.executable, "-c", CALLER, path], stderr=subprocess.DEVNULL)
    assert wait_for(lambda: started("forkserver"), START_SECONDS)
    process.kill()
    process.wait(30)
    assert wait_for(lambda: not started_processes(), 60)


@pytest.fixture
def all_cores():
    """Return the cores that this process may use, and give them back at the end."""
    cores = sorted(os.sched_getaffinity(0))
    yield cores
    os.sched_setaffinity(0, cores)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize("narrow_first", [True, False])
def test_ranks_have_the_cores_of_the_run_and_not_of_the_server(
    narrow_first, script, all_cores, light
):
    path = script("""
    import os
    print(sorted(os.sched_getaffinity(0)))
    """)
    for cores in (all_cores[:1], all_cores, all_cores[:1])[0 if narrow_first else 1 :]:
        os.sched_setaffinity(0, cores)
        assert run_quickly(path, 1).output == [[str(cores)]]


def test_the_server_starts_anew_when_such_a_variable_of_its_caller_changes(
    script, monkeypatch, light
):
    path = script("""
    import os, sys
    print(os.environ.get("OMP_SETTING"), "tensorflow" in sys.modules)
    """)
    assert run_quickly(path, 1).output == [["None True"]]
    first = server()
    monkeypatch.setenv("OMP_SETTING", "1")
    assert run_quickly(path, 1).output == [["1 True"]]
    assert server() != first
    monkeypatch.delenv("OMP_SETTING")
    assert run_quickly(path, 1).output == [["None True"]]


def test_a_killed_server_is_replaced(script, light):
    path = script("    print('here')")
    assert run_quickly(path, 1).ok
    killed = server()
    os.kill(killed, signal.SIGKILL)
    assert wait_for(lambda: psutil.Process(killed).status() == psutil.STATUS_ZOMBIE)
    assert run_quickly(path, 1).output == [["here"]]
    assert run_quickly(path, 1).output == [["here"]]
    assert server() != killed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_killed_caller_leaves_no_server_behind(number, script, tmp_path, light):
    path = script(f"""
    import pathlib, time
    pathlib.Path({str(tmp_path)!r}, "ready").touch()
    time.sleep(600)
    """)
    caller = CALLER if number == signal.SIGKILL else LIGHTLY + CALLER
    process = subprocess.Popen([sys.executable, "-c", caller, path], stderr=subprocess.DEVNULL)
    assert wait_for((tmp_path / "ready").exists, START_SECONDS)
    assert started("forkserver")
    process.send_signal(number)
    process.wait(30)
    assert wait_for(lambda: not started_processes())


@pytest.mark.parametrize("has_asked", [False, True])
def test_a_caller_killed_while_it_asks_its_server_leaves_nothing(has_asked, script, light):
    code = f"""{LIGHTLY}
import os, signal, sys
from multiprocessing import forkserver
from hvdcourse.launch.run import run_quickly
ask = forkserver.connect_to_new_process
def killed(descriptors):
    {has_asked} and ask(descriptors)
    os.kill(os.getpid(), signal.SIGKILL)
forkserver.connect_to_new_process = killed
run_quickly(sys.argv[1], 1)
"""
    command = [sys.executable, "-c", code, script("    print('here')")]
    done = subprocess.run(command, stderr=subprocess.DEVNULL, timeout=100)
    assert done.returncode == -signal.SIGKILL


def test_a_process_forked_from_the_owner_can_run_too(script, light):
    code = f"""{LIGHTLY}
import os
from hvdcourse.launch.run import run_quickly
path = {str(script("    print('here')"))!r}
run_quickly(path, 1)
child = os.fork()
result = run_quickly(path, 1)
assert result.output == [["here"]]
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child else 0)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=100).returncode == 0


def test_a_script_that_calls_run_without_a_guard_is_not_run_again(script, light):
    """multiprocessing would import the caller's script in the new process."""
    inner = script("print('inner')", "inner.py")
    outer = script(f"""
    {LIGHTLY}
    from hvdcourse.launch.run import run_quickly
    print("outer", run_quickly({str(inner)!r}, 1).output)
    """)
    done = subprocess.run([sys.executable, outer], capture_output=True, text=True, timeout=100)
    assert done.stdout == "outer [['inner']]\n", done.stderr


def test_only_what_is_the_same_as_when_newly_started_is_forked(monkeypatch):
    environment = dict(os.environ)
    assert can_fork("gloo", environment)
    assert not can_fork("mpi", environment)
    assert not can_fork("gloo", {**environment, "HVDCOURSE_FORK": "0"})
    assert not can_fork("gloo", {**environment, "TF_SETTING": "1"})
    monkeypatch.setattr("hvdcourse.launch.process.visible_gpus", lambda: 2)
    assert not can_fork("gloo", environment)
