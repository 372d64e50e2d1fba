"""The batch files of the course run for real on a Slurm of two nodes with two ranks each."""

import re
import sys

import pytest
from slurm import Slurm

from hvdcourse.paths import PROJECT

FILES = PROJECT / "source_code" / "cluster"
SCRIPT = """
    import socket
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()
    total = hvd.allreduce(tf.constant(hvd.rank()), op=hvd.Sum)
    place = (hvd.rank(), hvd.local_rank(), hvd.cross_rank())
    print(f"|{socket.gethostname()} {place} sum {int(total)}|\\n", end="", flush=True)
"""
PLACES = {
    "node1 (0, 0, 0) sum 6",
    "node1 (1, 1, 0) sum 6",
    "node2 (2, 0, 1) sum 6",
    "node2 (3, 1, 1) sum 6",
}


@pytest.fixture
def slurm(make_hosts, nothing_left):
    started = Slurm(make_hosts(2), nothing_left)
    try:
        started.start()
        yield started
    finally:
        started.stop()


def job(slurm: Slurm, file: str, *arguments: str) -> tuple[str, str]:
    """Submit one of the course's files from this environment."""
    environment = {"VIRTUAL_ENV": sys.prefix, "HVDCOURSE_INTERFACE": "hvd0"}
    return slurm.batch(str(FILES / file), *arguments, **environment)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("file", ["train_srun.sbatch", "train_horovodrun.sbatch"])
def test_a_job_has_a_rank_on_every_slot_of_every_node(file, slurm, run_script):
    state, output = job(slurm, file, run_script(SCRIPT))
    assert state == "COMPLETED", output
    assert set(re.findall(r"\|([^|\n]+)\|", output)) == PLACES


@pytest.mark.timeout(240)
@pytest.mark.parametrize("file", ["train_srun.sbatch", "train_horovodrun.sbatch"])
def test_a_rank_that_fails_fails_the_job(file, slurm, run_script):
    fails_on_one = "import horovod.tensorflow as hvd\nhvd.init()\nassert hvd.rank() != 3\n"
    waits = "import tensorflow as tf\nhvd.allreduce(tf.ones(1))\n"
    state, output = job(slurm, file, run_script(fails_on_one + waits))
    assert state == "FAILED"
    assert "AssertionError" in output


def test_a_job_without_a_script_or_an_environment_says_so(slurm):
    state, output = job(slurm, "train_srun.sbatch")
    assert (state, output.splitlines()[0][:16]) == ("FAILED", "error: no script")
    words = (str(FILES / "train_srun.sbatch"), "script.py")
    state, output = slurm.batch(*words, VIRTUAL_ENV="/nowhere")
    assert state == "FAILED"
    assert "error: no /nowhere/bin/python; run `make setup`" in output


@pytest.mark.timeout(240)
def test_the_first_training_run_of_the_course_runs_as_a_job(slurm):
    script = str(PROJECT / "source_code" / "start_here.py")
    state, output = job(slurm, "train_srun.sbatch", script, "--epochs", "1")
    assert state == "COMPLETED", output
    assert "test accuracy" in output
