"""Horovod's server through which Gloo's ranks meet, for the ranks of this machine alone.

Horovod's own listens on all interfaces: anyone on the same network may read and overwrite there
where the ranks meet.
"""

from typing import Any

from horovod.runner.http.http_server import RendezvousHTTPServer, RendezvousServer

ADDRESS = "127.0.0.1"


def keep_local() -> None:
    """Have the servers of this process listen on 127.0.0.1 only, and to many ranks at a time."""
    bind = RendezvousHTTPServer.server_bind

    def bind_locally(server: RendezvousHTTPServer) -> None:
        server.server_address = (ADDRESS, server.server_address[1])
        bind(server)

    RendezvousHTTPServer.server_bind = bind_locally
    # Python's own choice is 5, and a rank beyond them tries again after 1 to 7 seconds.
    RendezvousHTTPServer.request_queue_size = 128


def start_rendezvous() -> tuple[Any, int]:
    """Start a server in this process; return it and its port."""
    keep_local()
    server = RendezvousServer()
    return server, server.start()
