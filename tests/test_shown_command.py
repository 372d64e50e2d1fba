"""The line that a run shows does, typed into a terminal, what the run did."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hvdcourse.launch import run


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_the_shown_command_starts_the_same_ranks_with_the_same_arguments(backend, script, capfd):
    path = script("""
        import sys
        import horovod.tensorflow as hvd
        hvd.init()
        print(f"rank {hvd.rank()} of {hvd.size()} {sys.argv[1:]}")
    """)
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
    printed = sorted(re.findall(r"rank \d of \d \[.*?\]", done.stdout))
    assert printed == sorted(line for (line,) in result.output)
