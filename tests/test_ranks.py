"""How the ranks of one machine find each other over Gloo, and how they share its cores."""

import os
import socket

import pytest

from hvdcourse.launch import run
from hvdcourse.ranks import start_rendezvous

NP = 12
# Over Gloo, the ranks of a script that imports TensorFlow are forked.
FORKED = "if False:\n    import tensorflow\n"


def test_all_ranks_can_ask_at_once_where_the_others_are():
    server, port = start_rendezvous(NP)
    # From here on it answers nobody, as when it is busy with others.
    server._httpd.shutdown()
    connections = []
    try:
        for _ in range(NP):
            connections.append(socket.create_connection(("127.0.0.1", port), timeout=5))
    finally:
        for connection in connections:
            connection.close()
        server._httpd.server_close()


def test_a_rank_that_waits_over_mpi_leaves_the_core_to_the_one_it_waits_for(script, nothing_left):
    path = script(
        """
        import os, sys, time
        from mpi4py import MPI
        ranks = MPI.COMM_WORLD
        os.sched_setaffinity(0, {int(sys.argv[1])})
        ranks.Barrier()
        before = time.process_time()
        if ranks.rank == 0:
            while time.process_time() < before + 1:
                pass
        ranks.Barrier()
        print(time.process_time() - before)
        """
    )
    core = min(os.sched_getaffinity(0))
    result = run(path, 2, backend="mpi", arguments=[str(core)], timeout=60)
    works, waits = (float(line) for (line,) in result.output)
    # As often as the other, it would have used as much of the core.
    assert waits < works / 2


@pytest.mark.parametrize("ending", [pytest.param("", id="new"), pytest.param(FORKED, id="forked")])
def test_each_rank_over_gloo_has_a_session_of_its_own(ending, script, nothing_left):
    # Linux may share out cores by session: ranks in one kept them from everybody else.
    path = script("import os\nprint(os.getsid(0) == os.getpid())\n" + ending)
    assert run(path, 2, quiet=True).output == [["True"]] * 2
