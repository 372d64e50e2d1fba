"""Ports for servers that must be told theirs, since they cannot tell which they got."""

import random
import socket
from contextlib import ExitStack, suppress

# Linux gives outgoing connections ports from 32768 on, as long as nobody changes that: none of them
# takes one of these between the choice and the server's start.
_PORTS = range(20_000, 32_768)


def free_ports(count: int) -> list[int]:
    """Return that many ports of this machine that nobody listens on now."""
    # Two programs with the same seed must not get the same ports.
    candidates = random.SystemRandom().sample(_PORTS, len(_PORTS))
    ports: list[int] = []
    with ExitStack() as held:
        while len(ports) < count:
            with suppress(OSError):
                port = candidates.pop()
                held.enter_context(socket.create_server(("", port)))
                ports.append(port)
    return ports
