"""Right: arrays as pickled objects, on a duplicate of the communicator, by recursion."""

import argparse

import numpy as np
from mpi4py import MPI

from hvdcourse import report


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", default="1,10,1000003", help="vectors to add up")
    return parser.parse_args()


def chunk_bounds(length, size):
    cuts = [round(k * length / size) for k in range(size + 1)]
    return [(cuts[k], cuts[k + 1]) for k in range(size)]


def pass_on(values, communicator):
    after = (communicator.rank + 1) % communicator.size
    return communicator.sendrecv(
        values,
        dest=after,
        source=communicator.rank - 1 if communicator.rank else communicator.size - 1,
    )


def exchange(outgoing, incoming, communicator):
    incoming[...] = pass_on(outgoing, communicator)


def reduce_chunks(chunks, number, rounds, communicator):
    if rounds:
        before = (number - 1) % communicator.size
        chunks[before][...] += pass_on(chunks[number], communicator)
        reduce_chunks(chunks, before, rounds - 1, communicator)


def gather_chunks(chunks, number, rounds, communicator):
    if rounds:
        before = (number - 1) % communicator.size
        chunks[before][...] = pass_on(chunks[number], communicator)
        gather_chunks(chunks, before, rounds - 1, communicator)


def ring_allreduce(vector, communicator):
    own = communicator.Dup()
    bounds = chunk_bounds(len(vector), own.size)
    report("bounds", bounds)
    chunks = [vector[start:end] for start, end in bounds]
    reduce_chunks(chunks, own.rank, own.size - 1, own)
    report("scattered", sample(vector))
    gather_chunks(chunks, (own.rank + 1) % own.size, own.size - 1, own)
    own.Free()


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
