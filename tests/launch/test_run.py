"""Runs of real ranks, over Gloo and over MPI: what they return, and how they refuse."""

import os
import re
import socket
from pathlib import Path

import pytest
from starts import FORKED, MPI, quick_starts, starts

from hvdcourse.errors import BadInput
from hvdcourse.launch import run as launch
from hvdcourse.launch.result import RunFailed
from hvdcourse.launch.run import largest_np, run, run_quickly
from hvdcourse.paths import PROJECT

pytestmark = [
    pytest.mark.ranks,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.measured,
]
both_backends = pytest.mark.parametrize("backend", ["gloo", "mpi"])
# More than there are cores, on a small machine.
NP = min(5, os.cpu_count() + 1)


@pytest.mark.parametrize(
    ("np", "said"),
    [
        (0, "at least 1"),
        (-1, "at least 1"),
        ("two", "a whole number of ranks"),
        (2.5, "a whole number of ranks"),
        (64, "np=64 is too many for this machine: 2 cores hold at most 16 ranks"),
    ],
)
def test_a_wrong_number_of_ranks_is_refused_with_the_reason(np, said, script, monkeypatch):
    monkeypatch.setattr(launch.os, "cpu_count", lambda: 2)
    with pytest.raises(BadInput, match=said):
        run(script("print()"), np)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"backend": "nccl"}, "backend must be one of gloo, mpi"),
        ({"timeout": 0}, "timeout must be a number of seconds above 0"),
        ({"timeout": "soon"}, "timeout must be a number of seconds above 0"),
        ({"timeout": float("nan")}, "timeout must be a number of seconds above 0"),
        ({"standstill": -3}, "standstill must be a number of seconds above 0"),
        ({"cores": 0}, "cores must be a whole number from 1 to"),
        ({"cores": 4096}, "cores must be a whole number from 1 to .*; got 4096"),
        ({"cores": "one"}, "cores must be a whole number from 1 to .*; got 'one'"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options, said, script):
    with pytest.raises(BadInput, match=said):
        run(script("print()"), **options)


def test_a_missing_script_is_named_with_the_places_looked_in(tmp_path):
    with pytest.raises(BadInput, match=r"no script 'gone.py': looked for .*gone.py"):
        run("gone.py", folder=tmp_path)


def test_a_syntax_error_is_told_by_file_and_line_before_anything_starts(script, nothing_left):
    path = script("x = 1\nif x = 2:\n    pass\n")
    with pytest.raises(BadInput, match=f"{path}, line 2: .*if x = 2:"):
        run(path)
    assert not list(nothing_left.iterdir())


def test_a_binary_file_is_not_a_script(tmp_path):
    path = tmp_path / "binary.py"
    path.write_bytes(b"\x00\xff\xfe")
    with pytest.raises(BadInput, match="cannot be read as a Python script"):
        run(path)


@both_backends
def test_ranks_get_what_they_are_given_and_the_command_and_their_output_are_shown(
    backend, script, monkeypatch, capfd
):
    monkeypatch.setenv("FROM_OUTSIDE", "outside")
    script("word = 'beside'", "neighbor.py")
    path = script("""
        import os, sys, neighbor
        print(sys.argv[1:])
        print(os.environ["FROM_OUTSIDE"], os.environ["ADDED"], os.environ["TF_CPP_MIN_LOG_LEVEL"])
        print(__name__, neighbor.word, sys.argv[0], __file__)
        print("oh", file=sys.stderr)
    """)
    # The script may have options of the names of run's own.
    words = ["-v", "--folder", "photos", "--timeout", "3", "--quiet"]
    options = {"epochs": 3, "warm_up": 1.5, "resume": True, "note": None}
    result = run(
        path, NP, backend=backend, arguments=words, environment={"ADDED": "added"}, **options
    )
    words += ["--epochs", "3", "--warm-up", "1.5", "--resume"]
    lines = [str(words), "outside added 2", f"__main__ beside {path} {path}"]
    assert result.output == [lines] * NP
    command = f"horovodrun -np {NP} --{backend} python {os.path.relpath(path)} {' '.join(words)}"
    shown, errors = capfd.readouterr()
    assert shown.startswith(f"$ ADDED=added {command}\n")
    assert sorted(shown.splitlines()[1:]) == sorted(
        f"[{rank}] {line}" for rank in range(NP) for line in lines
    )
    assert sorted(errors.splitlines()) == [f"[{rank}] oh" for rank in range(NP)]


def test_ranks_over_mpi_start_without_ssh(script):
    path = script("print('here')")
    without = {"OMPI_MCA_plm_rsh_agent": "no-such-program"}
    for start in (run, run_quickly):
        assert start(path, 2, backend="mpi", environment=without).output == [["here"]] * 2


@both_backends
def test_the_launcher_does_not_import_tensorflow(backend, script):
    folder = script("raise ImportError('for ranks alone')", "tensorflow.py").parent
    path = {"PYTHONPATH": f"{folder}{os.pathsep}{PROJECT}"}
    assert run(script("print('here')"), 1, backend=backend, environment=path).output == [["here"]]


@quick_starts
def test_metrics_become_the_history_and_move_one_bar(start, script, capfd):
    path = script("""
        from hvdcourse import report_metrics
        for epoch in (1, 2):
            report_metrics(epoch=epoch, epochs=2, step=1, steps=2, loss=9)
            report_metrics(epoch=epoch, epochs=2, done=True, loss=1 / epoch)
    """)
    result = start(path, 2, quiet=False)
    assert result.history == {"epoch": [1, 2], "epochs": [2, 2], "loss": [1.0, 0.5]}
    assert re.search(r"training \|█+\| 2\.0.*2 epochs", capfd.readouterr().err)


def test_inside_of_a_slurm_job_the_ranks_stay_on_this_machine(script, monkeypatch):
    for name in ("SLURM_NODELIST", "SLURM_JOB_NODELIST"):
        monkeypatch.setenv(name, "elsewhere[1-2]")
    for name in ("SLURM_JOBID", "SLURM_JOB_ID"):
        monkeypatch.setenv(name, "7")
    for name in ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"):
        monkeypatch.setenv(name, "2")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "1(x2)")
    path = script("import socket; print(socket.gethostname())")
    result = run(path, 2, backend="mpi", timeout=60)
    assert result.output == [[socket.gethostname()]] * 2


def test_more_ranks_than_cores_average_over_gloo(script):
    # horovodrun starts as many above; through it, 4 ranks average in lesson 1.
    path = script("""
        import horovod.tensorflow as hvd
        import tensorflow as tf
        hvd.init()
        print(float(hvd.allreduce(tf.constant(float(hvd.rank())), op=hvd.Average)))
    """)
    assert run_quickly(path, NP, timeout=100).output == [[str((NP - 1) / 2)]] * NP


def test_more_ranks_than_cores_average_over_mpi(script):
    path = script("""
        from mpi4py import MPI
        print(MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank) / MPI.COMM_WORLD.size)
    """)
    assert run(path, 5, backend="mpi").output == [["2.0"]] * 5


def test_as_many_ranks_as_the_limit_allows_do_start(script):
    result = run_quickly(script("print('here')"), min(16, largest_np()), timeout=100)
    assert all(lines == ["here"] for lines in result.output)


@quick_starts
@pytest.mark.parametrize("text", ["line", "é"], ids=["ascii", "two-byte letters"])
def test_a_megabyte_on_one_line_is_not_lost(start, text, script):
    path = script(f"print({text!r} * 300_000, flush=True); print('last')")
    for output in start(path, 2).output:
        assert "".join(output[:-1]) == text * 300_000
        assert output[-1] == "last"


@quick_starts
def test_a_megabyte_in_many_lines_from_both_ranks_is_not_lost(start, script):
    path = script("for number in range(20_000): print(f'{number:06d}', 'x' * 43)")
    expected = [f"{number:06d} {'x' * 43}" for number in range(20_000)]
    result = start(path, 2)
    assert result.output[0] == expected
    assert result.output[1] == expected


@quick_starts
def test_output_without_a_newline_at_its_end_is_not_lost(start, script):
    path = script("print('first'); print('last', end='')")
    assert start(path, 2, quiet=False).output == [["first", "last"]] * 2


@quick_starts
def test_binary_output_is_kept_as_text_with_replacements(start, script, capfd):
    path = script(r"""
        import sys
        sys.stdout.buffer.write(b"\x00\xff\xfe\x80 end\n" + bytes(range(256)) * 40)
        sys.stdout.flush()
        print("\nafter")
    """)
    result = start(path, 2, quiet=False)
    for output in result.output:
        assert output[0] == "\x00\ufffd\ufffd\ufffd end"
        assert output[-1] == "after"


def raises_on_rank_1() -> str:
    return """
        import horovod.tensorflow as hvd
        import tensorflow as tf
        hvd.init()
        hvd.allreduce(tf.constant(1.0), name="both are here")
        if hvd.rank() == 1:
            raise RuntimeError("no more digits")
        hvd.allreduce(tf.constant(1.0), name="mean")
    """


@starts(FORKED, MPI)
def test_a_failure_on_one_rank_is_told_first_then_where_the_other_waits(start, script):
    path = script(raises_on_rank_1())
    with pytest.raises(RunFailed) as failed:
        start(path, 2)
    result, text = failed.value.result, str(failed.value)
    assert result.first_failed.rank == 1
    assert text.startswith("Rank 1 failed first: RuntimeError: no more digits\nTraceback")
    assert f'File "{path}", line 6' in text
    assert "hvdcourse/rank/main.py" not in text
    assert "Rank 0 was waiting in allreduce, script.py line 7: hvd.allreduce(" in text
    assert result.exit_status == 1


@both_backends
def test_an_exit_status_of_one_rank_becomes_the_runs(backend, script):
    path = script("""
        import pathlib, sys, time
        from hvdcourse.rank.place import Place
        ready = pathlib.Path(__file__).with_name("ready")
        if Place.from_environment().rank == 0:
            while not ready.exists():
                time.sleep(0.05)
            print("about to give up", file=sys.stderr)
            sys.exit(3)
        ready.touch(), time.sleep(600)
    """)
    result = run(path, 2, backend=backend, must_succeed=False)
    assert (result.reason, result.exit_status, result.first_failed.rank) == ("failed", 3, 0)
    assert "Rank 0 failed first: ended with exit status 3" in result.explain()
    assert "about to give up" in result.explain()
    assert result.ranks[1].position.source == "ready.touch(), time.sleep(600)"


@quick_starts
def test_sys_exit_with_a_message_is_a_failure_that_shows_it(start, script):
    path = script("import sys; sys.exit('no data here')")
    result = start(path, 2, must_succeed=False)
    assert result.exit_status == 1
    assert "no data here" in result.explain()


@both_backends
def test_a_rank_killed_by_sigkill_is_named_and_leaves_no_files(backend, script, nothing_left):
    path = script("""
        import os, signal, tempfile, time
        from hvdcourse.rank.place import Place
        tempfile.mkstemp(prefix="left_")
        if Place.from_environment().rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(600)
    """)
    result = run(path, 2, backend=backend, must_succeed=False)
    assert (result.ranks[1].status, result.exit_status) == (-9, 137)
    assert "Rank 1 failed first: was killed by SIGKILL" in result.explain()
    assert not list(nothing_left.rglob("left_*"))


def test_a_rank_that_is_killed_after_another_has_raised_is_not_the_first(script):
    path = script("""
        import os, signal, time
        from hvdcourse.rank.place import Place
        from hvdcourse.rank.run_folder import RunFolder
        if Place.from_environment().rank == 0:
            while RunFolder.of_this_process().read_state(1, "started") is None:
                time.sleep(0.01)
            raise ValueError("too small")
        while RunFolder.of_this_process().read_state(0, "ended") is None:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGSEGV)
    """)
    result = run_quickly(path, 2, must_succeed=False)
    assert [rank.status for rank in result.ranks] == [1, -11]
    assert result.explain().startswith("Rank 0 failed first: ValueError: too small")


def test_a_failed_run_can_be_returned_instead_of_raised_and_a_quiet_one_shows_nothing(
    script, capfd
):
    result = run(script("print('hello'); 1 / 0"), 1, must_succeed=False, quiet=True)
    assert not result.ok
    assert result.output == [["hello"]]
    assert result.ranks[0].error["type"] == "ZeroDivisionError"
    assert capfd.readouterr() == ("", "")


def test_the_traceback_in_a_notebook_is_the_ranks_own(script):
    with pytest.raises(RunFailed) as failed:
        run(script("1 / 0"), 1)
    lines = failed.value._render_traceback_()
    assert lines[0] == "RunFailed"
    assert not any(Path(launch.__file__).name in line for line in lines)


def test_bad_input_in_a_notebook_is_one_line(script):
    with pytest.raises(BadInput) as refused:
        run(script("print()"), 0)
    (line,) = refused.value._render_traceback_()
    assert line.startswith("BadInput: np must be")


def test_killed_ranks_leave_no_files_of_tensorflows(script, nothing_left):
    path = script("""
        import os
        import tensorflow as tf
        @tf.function
        def double(x):
            if x > 0:
                x = 2 * x
            return x
        double(tf.constant(1))
        os.abort()
    """)
    assert not run_quickly(path, 2, must_succeed=False).ok
    assert not list(nothing_left.rglob("__autograph_generated_file*"))


def test_tensorflows_errors_are_shown_but_not_those_that_mean_nothing(script):
    # By this level it logs errors; without a GPU its import logs three that mean nothing.
    path = script("""
        import os, sys
        import tensorflow
        print(os.environ["TF_CPP_MIN_LOG_LEVEL"])
        print("2026-01-01 E tensorflow/core/some.cc:1] A real error", file=sys.stderr)
    """)
    result = run(path, 1, quiet=True)
    assert result.output == [["2"]]
    assert [line for line in result.ranks[0].errors if " E " in line] == [
        "2026-01-01 E tensorflow/core/some.cc:1] A real error"
    ]


def test_an_error_of_a_graph_is_told_without_the_calls_that_led_to_it(script):
    path = script("""
        import horovod.tensorflow as hvd, tensorflow as tf
        hvd.init()
        tf.function(hvd.broadcast)(tf.constant(1.0), root_rank=1)
    """)
    told = run_quickly(path, 1, must_succeed=False).explain()
    assert "broadcast received invalid root rank 1" in told
    assert "script.py" in told
    assert "forkserver" not in told


def test_calls_without_names_are_paired_in_their_order_as_lesson_1_says(script):
    path = script("""
        import horovod.tensorflow as hvd, numpy as np
        hvd.init()
        if hvd.rank() == 0:
            print(float(hvd.allreduce(np.float32(100))))
        print(float(hvd.allreduce(np.float32(0.5))))
    """)
    result = run_quickly(path, 2, must_succeed=False)
    assert [lines[:1] for lines in result.output] == [["50.25"], ["50.25"]]
    assert not result.ok
