"""Right: blocking messages, odd ranks receive first; the last chunks are the longer ones."""

import argparse

import numpy as np
from mpi4py import MPI

from hvdcourse import report


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", default="1,10,1000003", help="vectors to add up")
    return parser.parse_args()


def chunk_bounds(length, size):
    short, longer = divmod(length, size)
    bounds, start = [], 0
    for chunk in range(size):
        end = start + short + (chunk >= size - longer)
        bounds.append((start, end))
        start = end
    return bounds


def exchange(outgoing, incoming, communicator):
    rank, size = communicator.Get_rank(), communicator.Get_size()

    def send():
        communicator.Ssend([outgoing, len(outgoing), MPI.DOUBLE], (rank + 1) % size, 11)

    def receive():
        communicator.Recv([incoming, MPI.DOUBLE], (rank - 1) % size, 11)

    if size == 1:
        incoming[:] = outgoing
        return
    for act in (receive, send) if rank % 2 else (send, receive):
        act()


def circulate(vector, bounds, communicator, chunk, combine):
    for _ in range(communicator.Get_size() - 1):
        out = slice(*bounds[chunk])
        chunk = (chunk - 1) % communicator.Get_size()
        into = slice(*bounds[chunk])
        arrived = np.empty(into.stop - into.start)
        exchange(vector[out], arrived, communicator)
        vector[into] = combine(vector[into], arrived)


def ring_allreduce(vector, communicator):
    rank, size = communicator.Get_rank(), communicator.Get_size()
    bounds = chunk_bounds(len(vector), size)
    report("bounds", bounds)
    circulate(vector, bounds, communicator, rank, np.add)
    report("scattered", sample(vector))
    circulate(vector, bounds, communicator, (rank + 1) % size, lambda _, arrived: arrived)


def sample(vector):
    """Return a short vector as it is, and about a thousand places of a long one."""
    return vector[:: max(1, len(vector) // 1000)]


def main():
    arguments = read_arguments()
    communicator = MPI.COMM_WORLD
    generator = np.random.default_rng()  # every rank draws other numbers

    # Eighths, whose sums are exact in whatever order they are added.
    outgoing = generator.integers(0, 8000, size=1_000_000) / 8
    incoming = np.zeros_like(outgoing)
    report("outgoing", sample(outgoing))
    exchange(outgoing, incoming, communicator)
    report("incoming", sample(incoming))

    for length in map(int, arguments.lengths.split(",")):
        vector = generator.integers(0, 8000, size=length) / 8
        report("vector", sample(vector))
        report("bounds for 7 ranks", chunk_bounds(length, 7))
        ring_allreduce(vector, communicator)
        report("reduced", sample(vector))


if __name__ == "__main__":
    main()
