"""How the ranks of one machine find each other over Gloo."""

import socket

from hvdcourse.ranks import start_rendezvous

NP = 12


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
