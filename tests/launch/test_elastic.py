"""Elastic jobs that lose workers, get others, or meet with faults: each has a clear end."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap

import pytest
from watching import started_processes, wait_for

from hvdcourse.checks.evidence import NotJudged, ObservedRun
from hvdcourse.checks.manifest import find_exercise
from hvdcourse.errors import BadInput
from hvdcourse.launch.command_line import python_path
from hvdcourse.launch.display import RunDisplay
from hvdcourse.launch.elastic import names_of_this_machine, run_elastic
from hvdcourse.launch.elastic_driver import Disturber
from hvdcourse.launch.job import Disturbance, OutputLine
from hvdcourse.launch.result import RankResult, RunResult
from hvdcourse.paths import SOLUTIONS
from hvdcourse.rank.run_folder import RunFolder
from hvdcourse.rank.variables import RUN_FOLDER_VARIABLE

pytestmark = [
    pytest.mark.ranks,
    pytest.mark.timeout(200),
    pytest.mark.usefixtures("nothing_left"),
]
SOLUTION = SOLUTIONS / "elastic.py"
EPOCHS = 12


def run_disturbed(*plan, np=2, **settings):
    options = {"images": 200, "epochs": EPOCHS, "timeout": 150, "quiet": True}
    return run_elastic(SOLUTION, np, plan=plan, must_succeed=False, **options, **settings)


def epochs_of(result):
    """Return what the workers told of their epochs."""
    return [one["value"] for one in result.ranks[0].evidence if one.get("report") == "epoch"]


@pytest.mark.measured
def test_the_job_goes_on_when_a_worker_is_killed_at_the_end():
    result = run_disturbed(Disturbance(after_epoch=EPOCHS - 1, kill=[1]))
    assert result.ok, result.explain()
    (killed,) = [one["value"] for one in result.ranks[0].evidence if one["report"] == "killed"]
    left = [one for one in epochs_of(result) if one["pid"] not in killed["pids"]]
    assert {one["epoch"] for one in left} == set(range(1, EPOCHS + 1))
    # The other worker tells of the last epoch, in which the kill came, a moment later.
    assert {one["size"] for one in left} == {2}
    assert result.history["epoch"][-1] == EPOCHS


def test_the_job_goes_on_when_two_of_three_workers_are_killed_at_once():
    result = run_disturbed(Disturbance(after_epoch=2, kill=[0, 2]), np=3)
    assert result.ok, result.explain()
    (killed,) = [one["value"] for one in result.ranks[0].evidence if one["report"] == "killed"]
    left = [one for one in epochs_of(result) if one["pid"] not in killed["pids"]]
    assert {one["pid"] for one in left} == {left[0]["pid"]}
    assert {one["epoch"] for one in left} == set(range(1, EPOCHS + 1))
    assert left[-1]["size"] == 1


def test_workers_are_what_the_line_starts(script, monkeypatch):
    path = script("""
        import os, sys
        place = [os.environ[f"HOROVOD_{name}"] for name in ("HOSTNAME", "RANK", "ELASTIC")]
        print([__name__, sys.argv, os.getcwd(), os.environ["MINE"], *place])
    """)
    monkeypatch.setenv("MINE", "kept")
    result = run_elastic(path, 2, arguments=["--words", "a b"], quiet=True, timeout=60)
    words = [os.path.relpath(path), "--words", "a b"]
    for rank in (0, 1):
        # Which host has which rank is not said.
        seen = [
            f"[{rank}]<stdout>:{['__main__', words, os.getcwd(), 'kept', host, str(rank), '1']}"
            for host in names_of_this_machine()[:2]
        ]
        assert set(seen) & set(result.output[0])


def test_a_worker_that_ends_badly_ends_its_job_as_such(script):
    path = script("import os, sys; sys.exit(3 if os.environ['HOROVOD_RANK'] == '1' else 0)")
    result = run_elastic(path, 2, quiet=True, timeout=60, must_succeed=False, min_np=2)
    assert "Process 1 exit with status code 3." in result.output[0]


def test_a_worker_may_end_by_sys_exit_and_a_folder_may_have_a_space(script, tmp_path):
    folder = tmp_path / "a b"
    folder.mkdir()
    path = script("import sys; print('trained'); sys.exit(None)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        result = run_elastic(path, 2, quiet=True, timeout=60)
    assert [line.endswith("trained") for line in result.output[0]].count(True) == 2


def test_a_worker_is_killed_once_all_of_them_wait_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv(RUN_FOLDER_VARIABLE, str(tmp_path))
    folder = RunFolder(tmp_path)
    with subprocess.Popen(["sleep", "100"]) as worker:
        plan = [Disturbance(after_epoch=1, kill=[0])]
        disturber = Disturber(plan, tmp_path / "hosts", folder)
        for rank in (1, 0):
            told = {"rank": rank, "size": 2, "pid": worker.pid}
            folder.append(0, "evidence", {"report": "waits for kill", "value": told})
            assert disturber.is_due(plan[0]) is (rank == 0)
        disturber.run()
        assert worker.wait(10) == -signal.SIGKILL


def test_when_all_workers_are_killed_the_job_ends():
    result = run_disturbed(Disturbance(after_epoch=2, kill=[0, 1]))
    assert (result.reason, result.exit_status) == ("failed", 1)
    assert "RuntimeError" in "\n".join(result.ranks[0].errors)


def test_with_fewer_workers_than_asked_for_the_job_waits_so_long_and_ends():
    result = run_disturbed(Disturbance(after_epoch=2, kill=[1]), min_np=2, elastic_timeout=5)
    assert (result.reason, result.exit_status) == ("failed", 1)
    assert max(one["epoch"] for one in epochs_of(result)) < EPOCHS


def test_ctrl_c_leaves_nothing(tmp_path):
    code = f"""
from hvdcourse.launch.display import RunDisplay
from hvdcourse.launch.job import OutputLine
from hvdcourse.launch.elastic import run_elastic
run_elastic({str(SOLUTION)!r}, 2, epochs=100000)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert any("epoch 5/100000" in line for line in process.stdout)
    process.send_signal(signal.SIGINT)
    process.stdout.close()
    assert process.wait(30) != 0
    assert wait_for(lambda: not started_processes())


BAD = [
    ({"plan": [Disturbance(after_epoch=1, add="localhost")]}, "the host 'localhost' is there"),
    ({"np": 4}, "np=4 workers need as many hosts; there are localhost, 127.0.0.1, 127.1"),
]


@pytest.mark.parametrize(("settings", "message"), BAD)
def test_what_cannot_be_run_is_refused(settings, message):
    with pytest.raises(BadInput, match=message):
        run_elastic(SOLUTION, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"after_epoch": 1}, "does nothing"),
        ({"after_epoch": 1, "kill": 1}, "kill must be a list of ranks"),
        ({"after_epoch": "1", "kill": [1]}, "after_epoch must be a number"),
    ],
)
def test_a_disturbance_that_cannot_be_is_refused(settings, message):
    with pytest.raises(BadInput, match=message):
        Disturbance(**settings)


def test_this_machine_has_names_for_two_hosts():
    names = names_of_this_machine()
    assert len(set(names)) == len(names) >= 2


def test_a_workers_line_is_shown_behind_the_workers_number(capsys):
    display = RunDisplay("", quiet=False)
    display.show(OutputLine(rank=0, stream="stdout", text="[3]<stdout>:here"))
    display.show(OutputLine(rank=0, stream="stdout", text="from the launcher"))
    assert capsys.readouterr().out == "[3] here\n[0] from the launcher\n"


def test_the_launcher_leaves_an_exit_status_to_the_thread_that_waits_for_it(tmp_path):
    path = tmp_path / "horovodrun"
    path.write_text(
        textwrap.dedent("""
            import multiprocessing, os

            if __name__ == "__main__":
                context = multiprocessing.get_context("spawn")
                worker, later = (context.Process(target=os._exit, args=(3,)) for _ in range(2))
                worker.start()
                os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
                later.start()  # as the launcher does for its discovery script, once a second
                print(os.waitid(os.P_PID, worker.pid, os.WEXITED).si_status)
        """)
    )
    environment = {RUN_FOLDER_VARIABLE: str(tmp_path), "PYTHONPATH": python_path(os.environ)}
    command = [sys.executable, str(path)]
    output = subprocess.check_output(command, env=os.environ | environment, text=True, timeout=60)
    assert output == "3\n"


OF_WORKERS = """\
[0]<stderr>:Traceback (most recent call last):
[0]<stderr>:  File "elastic.py", line 111, in main
[1]<stderr>:Traceback (most recent call last):
[0]<stderr>:AttributeError: of rank 0
[1]<stderr>:  File "elastic.py", line 111, in main
[1]<stderr>:AttributeError: of rank 1
Traceback (most recent call last):
  File "gloo_run.py", line 351, in launch_gloo_elastic
RuntimeError: Horovod detected that one or more processes exited"""


def test_the_error_of_a_worker_is_told_and_not_that_of_the_launcher():
    driver = RankResult(0, status=1, errors=OF_WORKERS.splitlines())
    result = RunResult("horovodrun", 1, "failed", 60, 0, [driver], [], elastic=True)
    assert result.explain().splitlines() == [
        "Horovod's launcher ended with exit status 1",
        "The last error of a worker:",
        "Traceback (most recent call last):",
        '  File "elastic.py", line 111, in main',
        "AttributeError: of rank 1",
    ]
    for step in find_exercise("elastic").steps:
        with pytest.raises(NotJudged) as judged:
            step.check(ObservedRun(result, {"images": 561}, hosts=(1, 1), disturbed=True))
        assert "AttributeError: of rank 1" in judged.value.seen
