"""A limited link takes as long as the model says, and a free one is far faster."""

import re
from concurrent.futures import ThreadPoolExecutor
from textwrap import dedent

import pytest

from hvdcourse.cluster import cluster

MEBIBYTE = 2**20
# What TCP's and Ethernet's own bytes leave of 100 Mbit/s.
USABLE_BITS_PER_SECOND = 95.9e6
# A busy machine may make one transfer slower.
TRIES = 5

RECEIVE = """
    import socket
    with socket.create_server(("", 9000)) as server:
        connection, _ = server.accept()
        while connection.recv(2**20):
            pass
        connection.sendall(b"!")
"""
SEND = """
    import socket, sys, time
    while True:
        try:
            connection = socket.create_connection((sys.argv[1], 9000), timeout=30)
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    begin = time.monotonic()
    connection.sendall(bytes(16 * 2**20))
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)
    print("seconds", time.monotonic() - begin)
"""
ALLREDUCE = """
    import time
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()
    tensor = tf.zeros(4 * 2**20)  # 16 MiB
    times = []
    for _ in range(4):
        begin = time.monotonic()
        hvd.allreduce(tensor, name="tensor").numpy()
        times.append(time.monotonic() - begin)
    if hvd.rank() == 0:
        print(f"seconds {sorted(times[1:])[1]}\\n", end="", flush=True)
"""


def seconds(completed: cluster.Completed) -> float:
    """Return the seconds that a script has printed."""
    return float(re.search(r"seconds ([\d.e-]+)", completed.output).group(1))


def transfer(hosts: list[cluster.Host], sender: int, receiver: int) -> float:
    """Return the seconds that 16 MiB take from one host to another."""
    with ThreadPoolExecutor() as pool:
        receive = ["python", "-c", dedent(RECEIVE)]
        received = pool.submit(cluster.execute, hosts[receiver], receive, 60, quiet=True)
        send = ["python", "-c", dedent(SEND), hosts[receiver].address]
        sent = cluster.execute(hosts[sender], send, 60, quiet=True)
        assert received.result().ok
    return seconds(sent)


@pytest.mark.parametrize(("sender", "receiver"), [(0, 1), (1, 0)])
def test_a_limited_link_lets_through_its_rate_both_ways(sender, receiver, make_hosts):
    hosts = make_hosts(2, bandwidth="100mbit")
    expected = 16 * MEBIBYTE * 8 / USABLE_BITS_PER_SECOND
    tries = (transfer(hosts, sender, receiver) for _ in range(TRIES))
    assert any(0.8 < seconds / expected < 1.6 for seconds in tries)


def test_without_a_limit_it_is_far_faster(make_hosts):
    hosts = make_hosts(2)
    assert any(transfer(hosts, 0, 1) < 0.5 for _ in range(TRIES))


def test_an_allreduce_takes_about_as_long_as_the_ring_model_says(make_hosts, run_script):
    hosts = make_hosts(2, slots=1, bandwidth="100mbit")
    command = cluster.horovodrun_command(hosts, script=[run_script(ALLREDUCE)])
    tries = (seconds(cluster.execute(hosts[0], command, timeout=150)) for _ in range(TRIES))
    # On n ranks each sends and receives 2 (n - 1) / n of the tensor; here n is 2.
    expected = 16 * MEBIBYTE * 8 / USABLE_BITS_PER_SECOND
    assert any(0.8 < measured / expected < 1.7 for measured in tries)
