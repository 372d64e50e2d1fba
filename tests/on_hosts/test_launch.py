"""The launch commands start real ranks on several hosts, each at its place."""

import re

import pytest

from hvdcourse.cluster import cluster

WHERE = """
    import socket
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()
    total = hvd.allreduce(tf.constant(hvd.rank()), op=hvd.Sum)
    place = (hvd.rank(), hvd.local_rank(), hvd.cross_rank(), hvd.cross_size())
    # In one piece, since the launchers mix what ranks print at the same time.
    print(f"|{socket.gethostname()} {place} sum {int(total)}|\\n", end="", flush=True)
"""
EVEN = {
    "node1 (0, 0, 0, 2) sum 6",
    "node1 (1, 1, 0, 2) sum 6",
    "node2 (2, 0, 1, 2) sum 6",
    "node2 (3, 1, 1, 2) sum 6",
}
# Nobody but node1 has a second rank, so local rank 1 is alone among its like.
UNEVEN = {
    "node1 (0, 0, 0, 3) sum 6",
    "node1 (1, 1, 0, 1) sum 6",
    "node2 (2, 0, 1, 3) sum 6",
    "node3 (3, 0, 2, 3) sum 6",
}


def places(completed: cluster.Completed) -> set[str]:
    """Return what the ranks said about themselves."""
    found = re.findall(r"\|([^|\n]+)\|", completed.output)
    assert len(found) == 4
    return set(found)


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_horovodrun_starts_four_ranks_on_two_hosts(backend, make_hosts, run_script):
    hosts = make_hosts(2)
    command = cluster.horovodrun_command(hosts, 4, backend, [run_script(WHERE)])
    assert places(cluster.execute(hosts[0], command, timeout=150)) == EVEN


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_horovodrun_takes_uneven_slots(backend, make_hosts, run_script):
    hosts = make_hosts(3, "2,1,1")
    command = cluster.horovodrun_command(hosts, None, backend, [run_script(WHERE)])
    assert command[4] == "node1:2,node2:1,node3:1"
    assert places(cluster.execute(hosts[0], command, timeout=150)) == UNEVEN


def test_plain_mpirun_takes_uneven_slots(make_hosts, run_script):
    hosts = make_hosts(3, [2, 1, 1])
    command = cluster.plain_mpirun_command(hosts, script=[run_script(WHERE)])
    assert places(cluster.execute(hosts[0], command, timeout=150)) == UNEVEN
