"""How the ranks of one machine find each other over Gloo, and how they share its cores."""

import os
import socket

import pytest
from starts import FORKED, GLOO

from hvdcourse.launch.rendezvous import start_rendezvous
from hvdcourse.launch.run import run_quickly

pytestmark = pytest.mark.ranks

NP = 12


def test_all_ranks_can_ask_at_once_where_the_others_are():
    server, port = start_rendezvous()
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
    result = run_quickly(path, 2, backend="mpi", arguments=[str(core)], timeout=60)
    works, waits = (float(line) for (line,) in result.output)
    # As often as the other, it would have used as much of the core.
    assert waits < works / 2


@pytest.mark.parametrize("fork", ["0", "1"])
def test_each_rank_over_gloo_has_a_session_of_its_own(fork, script, nothing_left, monkeypatch):
    # Linux may share out cores by session: ranks in one kept them from everybody else.
    monkeypatch.setenv("HVDCOURSE_FORK", fork)
    path = script("import os\nprint(os.getsid(0) == os.getpid())\n")
    assert run_quickly(path, 2).output == [["True"]] * 2


@pytest.mark.parametrize("start", [FORKED, GLOO], ids=lambda start: start.name)
def test_nobody_else_can_ask_where_the_ranks_meet(start, script, nothing_left):
    path = script("""
        import os, psutil
        port = int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])
        print({c.laddr.ip for c in psutil.net_connections("tcp")
               if c.status == "LISTEN" and c.laddr.port == port})
    """)
    assert start(path, 2).output == [["{'127.0.0.1'}"]] * 2
