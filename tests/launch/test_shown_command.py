"""The line that a run shows does, typed into a terminal, what the run did."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hvdcourse.launch.command_line import python_path
from hvdcourse.launch.run import run, run_quickly
from hvdcourse.rank.run_folder import RunFolder

pytestmark = pytest.mark.ranks

# Horovod reads over MPI what the launcher gave to Place, too, and comes with TensorFlow.
PLACE = {
    "gloo": """
        import horovod.tensorflow as hvd
        hvd.init()
        rank, size = hvd.rank(), hvd.size()
    """,
    "mpi": """
        from hvdcourse.rank.place import Place
        place = Place.from_environment()
        rank, size = place.rank, place.size
    """,
}
SAYS_WHAT_IT_GOT = """
        import os, sys
        import hvdcourse
        print(f"<rank {rank} of {size} {sys.argv[1:]} on {sorted(os.sched_getaffinity(0))}>")
"""


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_the_shown_command_starts_the_same_ranks_with_the_same_arguments_and_cores(
    backend, script, capfd
):
    path = script(PLACE[backend] + SAYS_WHAT_IT_GOT)
    result = run(path, 2, backend=backend, note="two words", epochs=1)
    command = capfd.readouterr().out.splitlines()[0].removeprefix("$ ")
    around = {**os.environ, "PATH": f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}"}
    # Root may not start mpirun otherwise; the course's own environment says so too.
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        shlex.split(command), env={**around, **allowed}, capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, done.stderr
    # mpirun may mix two ranks' lines.
    printed = sorted(re.findall(r"<rank \d of \d \[.*?\] on \[[\d, ]+\]>", done.stdout))
    assert printed == sorted(line for (line,) in result.output)
    shares = {line.partition(" on ")[2] for line in printed}
    assert len(shares) == min(2, len(os.sched_getaffinity(0)))


def test_the_shown_command_is_the_one_that_runs(script, capfd):
    path = script("""
        import psutil
        lines = [" ".join(process.cmdline()) for process in psutil.Process().parents()]
        print([line for line in lines if "bin/horovodrun" in line][-1])
    """)
    result = run(path, 1, note="two words")
    command = capfd.readouterr().out.splitlines()[0].removeprefix("$ ")
    assert shlex.split(command) == shlex.split(result.command)
    assert result.output[0][0].endswith(" ".join(shlex.split(command)))


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_a_line_typed_by_hand_is_recorded_where_the_environment_says_so(backend, script, tmp_path):
    path = script("from hvdcourse import report; report('answer', 42)")
    environment = {**os.environ, "HVDCOURSE_RUN_FOLDER": str(tmp_path)}
    environment["PYTHONPATH"] = python_path(os.environ)
    command = ["horovodrun", "-np", "2", f"--{backend}", "python", str(path)]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=100)
    folder = RunFolder(tmp_path)
    for rank in (0, 1):
        assert folder.read_state(rank, "ended")["status"] == 0
        assert folder.read_lines(rank, "evidence") == [{"report": "answer", "value": 42}]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_run_with_one_core_has_that_core_alone(script, capfd):
    path = script("""
        import os
        import hvdcourse
        print(sorted(os.sched_getaffinity(0)))
    """)
    result = run(path, 1, cores=1)
    (core,) = json.loads(result.output[0][0])
    assert capfd.readouterr().out.startswith(f"$ taskset --cpu-list {core} horovodrun -np 1 ")
    assert run_quickly(path, 1, cores=1).output == [[f"[{core}]"]]
