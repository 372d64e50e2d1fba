"""Where a rank stood, read from a real stack dump or a real traceback."""

import faulthandler
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from hvdcourse.launch.stacks import (
    IN_A_GRAPH,
    find_position,
    position_from_stack_file,
    position_from_traceback,
)
from hvdcourse.paths import PROJECT

HOROVOD = "/somewhere/site-packages/horovod/tensorflow/mpi_ops.py"


@pytest.fixture
def dump(tmp_path):
    """Write the stack of a rank that stands in line 2 of a script, below some inner frames."""

    def write(source: str, *inner: tuple[str, str]):
        path = tmp_path / "script.py"
        path.write_text(f"# first line\n{source}\n")
        frames = [*inner, (str(path), "main"), ("/lib/runpy.py", "run_path")]
        lines = [f'  File "{file}", line 2 in {function}' for file, function in frames]
        stack = tmp_path / "stack_0.txt"
        stack.write_text("\n".join(["Current thread 0x1 (most recent call first):", *lines, ""]))
        return position_from_stack_file(stack, str(path))

    return write


def test_a_position_names_the_file_the_line_and_its_text(dump):
    position = dump("    time.sleep(600)")
    assert (position.file, position.line, position.waits_in) == ("script.py", 2, None)
    assert str(position) == "at script.py line 2: time.sleep(600)"


@pytest.mark.parametrize(
    ("function", "collective"),
    [
        ("_allreduce", "allreduce"),
        ("_allreduce_async", "allreduce"),
        ("_grouped_allreduce", "allreduce"),
        ("allgather", "allgather"),
        ("broadcast", "broadcast"),
        ("broadcast_", "broadcast"),
        ("alltoall", "alltoall"),
        ("reducescatter", "reducescatter"),
        ("init", "hvd.init()"),
    ],
)
def test_a_frame_of_horovods_names_the_collective(dump, function, collective):
    position = dump("    x = f(x)", ("/lib/tensorflow/ops.py", "execute"), (HOROVOD, function))
    assert str(position) == f"waiting in {collective}, script.py line 2: x = f(x)"


def test_a_tape_that_averages_waits_in_allreduce_but_not_while_it_computes(dump):
    tape = ("/lib/horovod/tensorflow/__init__.py", "gradient")
    execute = ("/lib/tensorflow/python/eager/execute.py", "quick_execute")
    backprop = ("/lib/tensorflow/python/eager/backprop.py", "gradient")
    assert dump("tape.gradient(x, y)", execute, tape).waits_in == "allreduce"
    assert dump("tape.gradient(x, y)", execute, backprop, tape).waits_in is None


def test_a_step_of_fit_waits_in_a_graph(dump):
    execute = ("/lib/tensorflow/python/eager/execute.py", "quick_execute")
    graph = ("/lib/tensorflow/python/eager/polymorphic_function/atomic_function.py", "flat_call")
    waits_in = dump("    model.fit(x)", execute, graph, ("/lib/keras/training.py", "fit")).waits_in
    assert waits_in == IN_A_GRAPH


def test_a_frame_of_the_observer_hides_nothing(dump):
    horovods, mpi4pys = (
        (str(PROJECT / "hvdcourse" / "rank" / f"{name}.py"), "call")
        for name in ("observe", "observe_mpi4py")
    )
    assert dump("hvd.allreduce(x)", horovods, (HOROVOD, "_allreduce")).waits_in == "allreduce"
    assert dump("world.Send(x, dest=1)", mpi4pys).waits_in == "Send"


@pytest.mark.parametrize(
    "call", ["Send", "Recv", "Ssend", "Sendrecv", "send", "recv", "wait", "Waitall", "Barrier"]
)
def test_a_call_of_mpi4py_is_known_by_the_line_since_it_has_no_frame(dump, call):
    assert dump(f"    something.{call}(data)").waits_in == call


def test_another_function_of_that_name_is_not_taken_for_mpi4py(dump):
    assert dump("    queue.recv(data)", ("/lib/queue.py", "recv")).waits_in is None


def test_an_edited_script_is_read_anew(dump):
    assert dump("before()").source == "before()"
    assert dump("after_an_edit()").source == "after_an_edit()"


def test_an_import_of_horovod_is_no_collective(dump):
    position = dump("import horovod", ("/x/horovod/common/util.py", "<module>"))
    assert position.waits_in is None


def test_no_stack_and_a_stack_outside_the_script_are_no_position(tmp_path):
    assert position_from_stack_file(tmp_path / "none.txt", "script.py") is None
    assert find_position(['  File "/lib/x.py", line 3 in f'], "/script.py") is None
    (tmp_path / "empty.txt").touch()
    assert position_from_stack_file(tmp_path / "empty.txt", "script.py") is None


def test_the_last_of_several_dumps_counts(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("first()\nsecond()\n")
    dumps = [f'(most recent call first):\n  File "{path}", line {line} in f\n' for line in (1, 2)]
    stack = tmp_path / "stack.txt"
    stack.write_text("".join(dumps))
    assert position_from_stack_file(stack, str(path)).source == "second()"


def test_pythons_own_dump_is_understood(tmp_path):
    path = tmp_path / "script.py"
    stack = tmp_path / "stack.txt"
    path.write_text(
        "import faulthandler\n"
        "def inner():\n"
        f"    faulthandler.dump_traceback(open({str(stack)!r}, 'w'), all_threads=False)\n"
        "inner()\n"
    )
    subprocess.run([sys.executable, path], check=True, timeout=60)
    position = position_from_stack_file(stack, str(path))
    assert position.line == 3
    assert position.source.startswith(f"{faulthandler.__name__}.dump_traceback(")


def test_pythons_own_traceback_is_understood():
    try:
        Path("/nowhere/at/all").read_text()
    except OSError:
        text = traceback.format_exc()
    position = position_from_traceback(text, __file__)
    assert position.source == 'Path("/nowhere/at/all").read_text()'
