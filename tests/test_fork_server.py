"""Ranks that are forked behave as ranks that are newly started, and nothing outlives its owner."""

import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest
from test_supervisor import FORKED
from watching import HVDCOURSE, START_SECONDS, started, started_processes, wait_for

from hvdcourse.environment import OBSERVE_VARIABLE
from hvdcourse.fork_client import FORK_SERVER, can_fork
from hvdcourse.forked_rank import status_of
from hvdcourse.launch import run

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("nothing_left")]


@pytest.fixture
def forked(script):
    """Write a script whose ranks are forked."""
    return lambda text: script(text.rstrip(" ") + FORKED)


def test_the_second_run_uses_the_same_server_and_the_ranks_have_tensorflow(forked):
    path = forked("""
    import sys
    print("tensorflow" in sys.modules)
    """)
    assert run(path, 2, quiet=True).output == [["True"]] * 2
    server = FORK_SERVER.pid
    assert run(path, 2, quiet=True).output == [["True"]] * 2
    assert server is not None
    assert FORK_SERVER.pid == server


def test_from_the_second_run_on_the_ranks_find_horovods_functions_converted(forked):
    path = forked("""
    from tensorflow.python.autograph.core.converter import ConversionOptions
    from tensorflow.python.autograph.impl.api import _TRANSPILER
    from hvdcourse.convert_horovod import horovods_functions
    converted = set()
    for asked_for_by_user, functions in horovods_functions().items():
        options = ConversionOptions(True, asked_for_by_user, optional_features=())
        converted |= {_TRANSPILER._cache.has(one, options) for one in functions}
    print(converted)
    """)
    FORK_SERVER.stop()
    assert run(path, 2, quiet=True).output == [["{False}"]] * 2
    assert run(path, 2, quiet=True).output == [["{True}"]] * 2
    assert run(path, 2, quiet=True).output == [["{True}"]] * 2


def test_a_training_has_nothing_of_horovods_left_to_convert(forked):
    path = forked("""
    import horovod.tensorflow.keras as hvd
    import tensorflow as tf
    from horovod.tensorflow import broadcast_variables
    from tensorflow.python.autograph.impl.api import _TRANSPILER
    hvd.init()
    transform = type(_TRANSPILER).transform_ast
    def told(transpiler, node, context):
        module = context.info.namespace["__name__"]
        if module.startswith("horovod"):
            print(module, context.info.name)
        return transform(transpiler, node, context)
    type(_TRANSPILER).transform_ast = told
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.build((None, 2))
    model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1)), "mse")
    broadcast_variables(model.variables, root_rank=0)
    model.fit(tf.ones((4, 2)), tf.ones((4, 1)), verbose=0)
    print("trained")
    """)
    FORK_SERVER.stop()
    assert all(len(lines) > 1 for lines in run(path, 2, quiet=True).output)
    assert run(path, 2, quiet=True).output == [["trained"]] * 2


@pytest.mark.parametrize(
    ("code", "status"), [("None", 0), ("3", 3), ("'no data'", 1), ("-1", 255), ("256", 0)]
)
def test_a_forked_process_ends_as_python_ends(code, status):
    assert status_of(SystemExit(eval(code))) == status


def test_a_rank_ends_with_a_pool_of_threads_still_open(forked):
    path = forked("""
    from concurrent.futures import ThreadPoolExecutor
    POOL = ThreadPoolExecutor(2)
    print(list(POOL.map(str, range(3))))
    """)
    assert run(path, 2, quiet=True, timeout=60).output == [["['0', '1', '2']"]] * 2


def test_ranks_have_the_environment_and_the_folder_of_the_run(forked, tmp_path, monkeypatch):
    path = forked("""
    import os, tempfile
    print(os.environ.get("MINE"), os.environ.get("ADDED"), os.getcwd(), tempfile.gettempdir())
    """)
    for mine in ("one", "two"):
        folder = tmp_path / mine
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("MINE", mine)
        result = run(path, 1, quiet=True, environment={"ADDED": "added"})
        assert result.output == [[f"{mine} added {folder} {os.environ['TMPDIR']}"]]
    monkeypatch.delenv("MINE")
    assert run(path, 1, quiet=True).output[0][0].startswith("None None ")


@pytest.fixture
def all_cores():
    """Return the cores that this process may use, and give them back at the end."""
    cores = sorted(os.sched_getaffinity(0))
    yield cores
    os.sched_setaffinity(0, cores)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize("narrow_first", [True, False])
def test_ranks_have_the_cores_of_the_run_and_not_of_the_server(narrow_first, forked, all_cores):
    path = forked("""
    import os
    print(sorted(os.sched_getaffinity(0)))
    """)
    FORK_SERVER.stop()
    for cores in (all_cores[:1], all_cores, all_cores[:1])[0 if narrow_first else 1 :]:
        os.sched_setaffinity(0, cores)
        assert run(path, 1, quiet=True).output == [[str(cores)]]


def test_a_variable_that_is_read_at_a_start_reaches_a_new_server(forked):
    path = forked("""
    import sys
    print(sys.flags.hash_randomization)
    """)
    assert run(path, 1, quiet=True).output == [["1"]]
    server = FORK_SERVER.pid
    result = run(path, 1, quiet=True, environment={"PYTHONHASHSEED": "0"})
    assert result.output == [["0"]]
    assert FORK_SERVER.pid != server
    assert not psutil.pid_exists(server)


def test_every_rank_of_every_run_draws_its_own_random_numbers(forked):
    path = forked("""
    import random
    import numpy
    import tensorflow as tf
    print(random.random())
    print(numpy.random.rand())
    print(float(tf.random.uniform(())))
    print(float(tf.keras.initializers.GlorotUniform()((1, 1))[0, 0]))
    """)
    numbers = [line for _ in range(2) for rank in run(path, 2, quiet=True).output for line in rank]
    assert len(set(numbers)) == len(numbers) == 16


ENDS = {
    "sys.exit(3)": (3, "ended with exit status 3"),
    "os.kill(os.getpid(), signal.SIGSEGV)": (-11, "was killed by SIGSEGV"),
    "os._exit(7)": (7, "ended with exit status 7"),
    "raise KeyError('lost')": (1, "KeyError: 'lost'"),
    "sys.exit('not today')": (1, "ended with exit status 1"),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_rank_is_told(end, forked):
    path = forked(f"""
    import os, signal, sys
    {end}
    """)
    (rank,) = run(path, 1, quiet=True, must_succeed=False).ranks
    assert (rank.status, rank.describe_end()) == ENDS[end]


def test_threads_and_what_is_registered_for_the_end_are_waited_for(forked):
    path = forked("""
    import atexit, threading, time
    atexit.register(print, "at the end")
    threading.Thread(target=lambda: (time.sleep(0.5), print("a thread", flush=True))).start()
    print("the script")
    """)
    assert run(path, 1, quiet=True).output == [["the script", "a thread", "at the end"]]


def test_what_is_printed_without_an_end_of_line_arrives_at_once(forked):
    path = forked("""
    import time
    print("so far", end="")
    time.sleep(600)
    """)
    result = run(path, 1, timeout=3, quiet=True, must_succeed=False)
    assert result.output == [["so far"]]


def test_a_killed_server_is_replaced(forked):
    path = forked("    print('here')")
    assert run(path, 1, quiet=True).ok
    killed = FORK_SERVER.pid
    os.kill(killed, signal.SIGKILL)
    assert wait_for(lambda: psutil.Process(killed).status() == psutil.STATUS_ZOMBIE)
    assert run(path, 1, quiet=True).output == [["here"]]
    assert run(path, 1, quiet=True).output == [["here"]]
    assert FORK_SERVER.pid != killed


def test_a_start_of_the_server_that_is_interrupted_is_forgotten(forked):
    path = forked("    print('here')")
    FORK_SERVER.stop()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    with pytest.raises(KeyboardInterrupt):
        run(path, 1, quiet=True)
    assert FORK_SERVER.pid is None
    assert run(path, 1, quiet=True).output == [["here"]]


def test_a_killed_supervisor_takes_its_ranks_with_it_and_is_told_of(forked, tmp_path):
    path = forked(f"""
    import pathlib, time
    pathlib.Path({str(tmp_path)!r}, "ready").touch()
    time.sleep(600)
    """)
    found = []
    thread = threading.Thread(
        target=lambda: found.append(run(path, 2, quiet=True, must_succeed=False))
    )
    thread.start()
    assert wait_for((tmp_path / "ready").exists, START_SECONDS)
    (supervisor,) = psutil.Process(FORK_SERVER.pid).children()
    supervisor.kill()
    thread.join(30)
    assert found[0].reason == "the launcher was killed"
    assert wait_for(lambda: not started_processes())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_killed_command_leaves_no_server_behind(number, forked, tmp_path):
    path = forked(f"""
    import pathlib, time
    pathlib.Path({str(tmp_path)!r}, "ready").touch()
    time.sleep(600)
    """)
    process = subprocess.Popen([HVDCOURSE, "run", path, "-np", "2"], stdout=subprocess.DEVNULL)
    assert wait_for((tmp_path / "ready").exists, START_SECONDS)
    assert started("hvdcourse.fork_server")
    process.send_signal(number)
    process.wait(30)
    assert wait_for(lambda: not started_processes())


def test_a_command_killed_while_its_server_starts_leaves_nothing(forked):
    path = forked("    print('here')")
    process = subprocess.Popen([HVDCOURSE, "run", path, "-np", "2"], stdout=subprocess.DEVNULL)
    assert wait_for(lambda: started("hvdcourse.fork_server"), START_SECONDS)
    process.kill()
    process.wait(30)
    assert wait_for(lambda: not started_processes(), 60)


def test_a_process_forked_from_the_owner_has_a_server_of_its_own(forked):
    code = f"""
import os
from hvdcourse import run
from hvdcourse.environment import OBSERVE_VARIABLE
from hvdcourse.fork_client import FORK_SERVER
path = {str(forked("    print('here')"))!r}
run(path, 1, quiet=True)
mine = FORK_SERVER.pid
child = os.fork()
result = run(path, 1, quiet=True)
assert result.output == [["here"]]
assert (FORK_SERVER.pid == mine) == bool(child)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child else 0)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=100).returncode == 0


def test_what_gains_nothing_is_not_forked(script):
    path = script("from horovod import runner\n")
    job = {"backend": "gloo", "script": str(path), "environment": {}}
    assert can_fork(job, {})
    assert not can_fork({**job, "backend": "mpi"}, {})
    assert not can_fork(job, {"HVDCOURSE_FORK": "0"})
    job["script"] = str(script("import numpy\n", "other.py"))
    assert not can_fork(job, {})
    assert can_fork({**job, "environment": {OBSERVE_VARIABLE: "training"}}, {})
