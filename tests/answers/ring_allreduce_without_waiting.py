"""Right: Isend and Irecv on a ring that MPI makes, the first chunks being the longer ones."""

import argparse

import numpy as np
from mpi4py import MPI

from hvdcourse import report


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", default="1,10,1000003", help="vectors to add up")
    return parser.parse_args()


def chunk_bounds(length, size):
    pieces = np.array_split(np.arange(length), size)
    ends = np.cumsum([len(piece) for piece in pieces])
    return [[end - len(piece), end] for end, piece in zip(ends, pieces, strict=True)]


def exchange(outgoing, incoming, communicator):
    before, after = communicator.Shift(0, 1)
    requests = [
        communicator.Irecv(incoming, source=before),
        communicator.Isend(buf=outgoing, dest=after),
    ]
    MPI.Request.Waitall(requests)


def ring_allreduce(vector, communicator):
    me, ring = communicator.rank, communicator.size
    bounds = chunk_bounds(len(vector), ring)
    chunks = [vector[start:end] for start, end in bounds]
    report("bounds", bounds)
    for place in range(me, me - ring + 1, -1):
        into = chunks[(place - 1) % ring]
        fresh = np.zeros_like(into)
        exchange(chunks[place % ring], fresh, communicator)
        into += fresh
    report("scattered", sample(vector))
    for place in range(me + 1, me + 2 - ring, -1):
        exchange(chunks[place % ring], chunks[(place - 1) % ring], communicator)


def sample(vector):
    """Return a short vector as it is, and about a thousand places of a long one."""
    return vector[:: max(1, len(vector) // 1000)]


def main():
    arguments = read_arguments()
    world = MPI.COMM_WORLD
    communicator = world.Create_cart([world.size], periods=[True])
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
