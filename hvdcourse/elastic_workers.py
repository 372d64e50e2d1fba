"""Forks the workers of an elastic job, where the launcher has imported TensorFlow already.

To a new worker the import is most of the time until it takes part. Horovod starts its workers by a
command; this command is ``hvdcourse.elastic_worker_client``, which asks here for the real one.
"""

import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from hvdcourse import rank_main
from hvdcourse.forked_rank import become
from hvdcourse.place import split_cores

CLIENT = Path(__file__).with_name("elastic_worker_client.py")
POLL_SECONDS = 0.05


def worker_command(folder: Path, words: list[str], np: int) -> list[str]:
    """Return the command for the workers of the Python script and arguments in ``words``.

    Where TensorFlow is imported, a process is started that forks them, each on its share of the
    cores, of which there are ``np``. It ends with this one, and must be started before this
    process has threads.
    """
    if "tensorflow" not in sys.modules:
        return [sys.executable, "-u", *words]
    path = folder / "workers.socket"
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
    except OSError:  # a path longer than a socket may have
        return [sys.executable, "-u", *words]
    listener.listen()
    if os.fork() == 0:
        rank_main.die_with_parent()
        Workers(listener, np).serve()
    listener.close()
    return [sys.executable, "-I", "-S", str(CLIENT), str(path), *words]


class Workers:
    """Forks a worker for each client, ends it with its client, and tells the client its end."""

    def __init__(self, listener: socket.socket, np: int):
        self.listener, self.np = listener, np
        self.clients: dict[int, socket.socket] = {}
        self.shares: dict[int, int] = {}

    def serve(self) -> None:
        """Serve until this process is killed."""
        while True:
            waiting = [self.listener, *self.clients.values()]
            ready, _, _ = select.select(waiting, [], [], POLL_SECONDS)
            for one in ready:
                if one is self.listener:
                    self.start(self.listener.accept()[0])
                else:
                    self.end_worker_of(one)
            self.collect()

    def start(self, client: socket.socket) -> None:
        """Fork a worker as the client asks for it, unless the client is gone already."""
        length, files, _, _ = socket.recv_fds(client, 8, 2)
        text = client.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)
        try:
            request = json.loads(text)
        except ValueError:
            client.close()
            for file in files:
                os.close(file)
            return
        share = self.free_share()
        pid = os.fork()
        if pid == 0:
            for one in (self.listener, client, *self.clients.values()):
                one.close()
            become_worker(request, share, self.np, *files)
        for file in files:
            os.close(file)
        self.clients[pid], self.shares[pid] = client, share

    def free_share(self) -> int:
        """Return the number of a share of the cores that the fewest workers have."""
        taken = list(self.shares.values())
        return min(range(self.np), key=taken.count)

    def end_worker_of(self, client: socket.socket) -> None:
        """Kill the worker of a client that is gone: the launcher has ended it."""
        for pid, one in self.clients.items():
            if one is client and client.recv(1) == b"":
                os.kill(pid, signal.SIGKILL)

    def collect(self) -> None:
        """Tell the clients of workers that have ended how they ended, as a shell tells it."""
        for pid in list(self.clients):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            code = os.waitstatus_to_exitcode(status)
            del self.shares[pid]
            with self.clients.pop(pid) as client, suppress(OSError):
                client.sendall((code if code >= 0 else 128 - code).to_bytes(4, "big"))


def become_worker(request: dict, share: int, np: int, stdout: int, stderr: int) -> None:
    """Run this process on as a worker, as ``python -u SCRIPT ARGUMENTS`` would."""
    rank_main.die_with_parent()
    os.chdir(request["cwd"])
    script = request["arguments"][0]
    sys.path[0] = str(Path(script).parent)

    def main() -> None:
        split_cores(share, np)
        runpy.run_path(script, run_name="__main__")

    become(main, request["arguments"], request["environ"], stdout, stderr)
