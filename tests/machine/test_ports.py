"""Free ports: different ones, on which a server can start."""

import random
import socket
from contextlib import ExitStack

from hvdcourse.machine import ports
from hvdcourse.machine.ports import free_ports


def test_a_server_can_start_on_each():
    with ExitStack() as servers:
        for port in free_ports(20):
            servers.enter_context(socket.create_server(("127.0.0.1", port)))


def test_they_differ_where_two_programs_have_the_same_seed():
    random.seed(0)
    first = free_ports(3)
    random.seed(0)
    assert free_ports(3) != first


def test_a_port_that_is_taken_is_not_among_them(monkeypatch):
    taken, free = free_ports(2)
    monkeypatch.setattr(ports, "_PORTS", [taken, free])
    with socket.create_server(("", taken)):
        for _ in range(10):
            assert free_ports(1) == [free]
