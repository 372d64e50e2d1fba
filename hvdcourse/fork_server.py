"""A process that has imported TensorFlow and Horovod, and forks the supervisors of runs.

The two imports keep a core busy for 3 to 5 seconds, which is longer than most runs of this course
compute. A process that starts several runs, such as a notebook's kernel or a check, has them
imported once: ``hvdcourse.fork_client`` starts this server with the first run, and it ends with
the process that started it.

``python -u -m hvdcourse.fork_server`` talks through the socket that is its stdin. It says READY,
then takes three open files with each request, and answers with the number of the process that has
them as stdin, stdout and stderr.
"""

import gc
import os
import signal
import socket
from contextlib import suppress

READY = b"ready"
REQUEST = b"start"


def load_libraries() -> None:
    """Import what the ranks need, and compute nothing: threads do not survive a fork."""
    # It would look for garbage some 700 times, in a sixth of the time that the imports take.
    gc.disable()
    import horovod.tensorflow.keras
    import numpy
    import tensorflow

    import hvdcourse.supervisor

    del horovod, hvdcourse, numpy, tensorflow
    # The garbage collector of a forked process need not look through all of this again.
    gc.collect()
    gc.freeze()
    gc.enable()


def serve(connection: socket.socket) -> list[int] | None:
    """Fork a process for each request.

    Returns the three files in the forked process, and None in this one, at the end.
    """
    connection.sendall(READY)
    requests = 0
    while True:
        message, files, _, _ = socket.recv_fds(connection, len(REQUEST), 3)
        if not message:
            return None
        requests += 1
        if requests == 2:
            # It pays for whoever starts several runs.
            with suppress(Exception):
                from hvdcourse.convert_horovod import convert_horovod

                convert_horovod()
        pid = os.fork()
        if pid == 0:
            return files
        for file in files:
            os.close(file)
        connection.sendall(pid.to_bytes(4, "big"))


def main() -> None:
    """Serve until the other end of the socket is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load_libraries()
    # Nobody here asks how a supervisor ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    connection = socket.socket(fileno=os.dup(0))
    files = serve(connection)
    connection.close()
    if files is None:
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    for standard, file in enumerate(files):
        os.dup2(file, standard)
        os.close(file)
    from hvdcourse import supervisor

    supervisor.main()


if __name__ == "__main__":
    main()
