"""Ranks of one machine need no network: only the loopback interface, which every machine has."""

import subprocess

import pytest
from watching import HVDCOURSE

pytestmark = pytest.mark.ranks

APART = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_ranks_average_in_a_namespace_without_a_network(backend, script):
    if subprocess.run([*APART, "true"], capture_output=True).returncode:
        pytest.skip("a network namespace is not allowed here")
    path = script("""
        import horovod.tensorflow as hvd
        import tensorflow as tf
        hvd.init()
        print(float(hvd.allreduce(tf.constant(float(hvd.rank())), op=hvd.Average)))
    """)
    command = [*APART, HVDCOURSE, "run", str(path), "-np", "2", "--backend", backend]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()[1:]) == ["[0] 0.5", "[1] 0.5"]
