"""Stands for one worker of an elastic job where Horovod's launcher started a command.

    python -I -S elastic_worker_client.py SOCKET SCRIPT ARGUMENTS

It has the worker forked by ``hvdcourse.elastic_workers``, with its own environment and output, and
ends as the worker ends. It imports nothing that takes long.
"""

import json
import os
import socket
import sys


def main() -> None:
    """Ask for a worker, and wait for its end."""
    path, *arguments = sys.argv[1:]
    request = {"arguments": arguments, "cwd": os.getcwd(), "environ": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        text = json.dumps(request).encode()
        socket.send_fds(connection, [len(text).to_bytes(8, "big")], [1, 2])
        connection.sendall(text)
        answer = connection.recv(4, socket.MSG_WAITALL)
    sys.exit(int.from_bytes(answer, "big") if len(answer) == 4 else 1)


if __name__ == "__main__":
    main()
