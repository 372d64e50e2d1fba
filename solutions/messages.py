"""Average one vector over all ranks in two ways; count the bytes that each rank moves, and time it.

Run it:  horovodrun -np 4 --mpi python messages.py

Both ways use nothing but messages from one rank to another. This script is complete: it is an
experiment of lessons 1 and 5, not an exercise.
"""

import argparse
import time

import numpy as np
from mpi4py import MPI

from hvdcourse import report


class Messenger:
    """Sends and receives vectors, and counts the bytes that go out and come in."""

    def __init__(self, communicator):
        self.communicator = communicator
        self.rank, self.size = communicator.Get_rank(), communicator.Get_size()
        self.bytes_out = self.bytes_in = 0

    def send(self, values, to):
        """Send a vector to one rank."""
        self.communicator.Send(values, dest=to)
        self.bytes_out += values.nbytes

    def receive(self, into, source):
        """Receive a vector from one rank."""
        self.communicator.Recv(into, source=source)
        self.bytes_in += into.nbytes

    def exchange(self, values, to, into, source):
        """Send to one rank and receive from another at the same time: no rank waits forever."""
        self.communicator.Sendrecv(values, dest=to, recvbuf=into, source=source)
        self.bytes_out += values.nbytes
        self.bytes_in += into.nbytes


def average_with_parameter_server(vector, messenger):
    """Return the mean over ranks. Rank 0 collects every vector and sends the mean to everyone."""
    if messenger.rank != 0:
        messenger.send(vector, to=0)
        mean = np.empty_like(vector)
        messenger.receive(mean, source=0)
        return mean
    total, incoming = vector.copy(), np.empty_like(vector)
    for worker in range(1, messenger.size):
        messenger.receive(incoming, source=worker)
        total += incoming
    mean = total / np.float32(messenger.size)
    for worker in range(1, messenger.size):
        messenger.send(mean, to=worker)
    return mean


def average_with_ring(vector, messenger):
    """Return the mean over ranks. Chunks travel round the ring twice: summed, then shared."""
    rank, size = messenger.rank, messenger.size
    neighbors = {"to": (rank + 1) % size, "source": (rank - 1) % size}
    total = vector.copy()
    chunks = np.array_split(total, size)  # views: a change of a chunk changes `total`
    for step in range(size - 1):  # scatter-reduce
        incoming = np.empty_like(chunks[(rank - step - 1) % size])
        messenger.exchange(chunks[(rank - step) % size], into=incoming, **neighbors)
        chunks[(rank - step - 1) % size] += incoming
    for step in range(size - 1):  # allgather
        arriving = chunks[(rank - step) % size]
        messenger.exchange(chunks[(rank - step + 1) % size], into=arriving, **neighbors)
    return total / np.float32(size)


METHODS = {"parameter_server": average_with_parameter_server, "ring": average_with_ring}


def main():
    """Average with both methods, compare with the known mean, and report bytes and seconds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=840_000, help="float32 numbers to average")
    length = parser.parse_args().length
    communicator = MPI.COMM_WORLD
    rank, size = communicator.Get_rank(), communicator.Get_size()
    # Small whole numbers: every order of adding them gives exactly the same sum.
    places = np.arange(length) % 100
    vector = (places + rank).astype(np.float32)
    expected = (places + (size - 1) / 2).astype(np.float32)
    for name, average in METHODS.items():
        messenger = Messenger(communicator)
        communicator.Barrier()
        began = time.perf_counter()
        mean = average(vector, messenger)
        communicator.Barrier()
        seconds = time.perf_counter() - began
        counts = {"out": messenger.bytes_out, "in": messenger.bytes_in}
        is_right = bool(np.allclose(mean, expected, rtol=1e-6))
        report(name, {**counts, "vector": vector.nbytes, "right": is_right, "seconds": seconds})


if __name__ == "__main__":
    main()
