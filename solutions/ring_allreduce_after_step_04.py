"""A ring allreduce from messages between neighbors: for any number of ranks, any length, in place.

Run it:    horovodrun -np 4 --mpi python ring_allreduce.py
Check it:  hvdcourse check ring_allreduce

`report(name, value)` prints a value, and lets the check see it. Leave these lines where they are.
"""

import argparse

import numpy as np
from mpi4py import MPI

from hvdcourse import report


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", default="1,10,1000003", help="vectors to add up")
    return parser.parse_args()


def chunk_bounds(length, size):
    """Return `size` pairs (start, end) that cut range(length) into consecutive chunks."""
    # Step 1: Cut the vector into as many chunks as there are ranks, as equal as can be: their
    # lengths differ by 1 at most. A chunk may be empty, as (7, 7) is.
    # Rounding k * length / size down spreads what does not divide over the whole vector.
    cuts = [k * length // size for k in range(size + 1)]
    bounds = [(cuts[k], cuts[k + 1]) for k in range(size)]
    return bounds


def exchange(outgoing, incoming, communicator):
    """Send `outgoing` to the next rank, and receive `incoming` from the one before."""
    # Step 2: The ranks stand in a ring: after the last comes rank 0, and a rank that is alone is
    # its own neighbor. Send and receive at the same time, with Sendrecv, a method of mpi4py's
    # communicator. If all ranks send first and wait until that is done, nobody receives.
    rank, size = communicator.Get_rank(), communicator.Get_size()
    after, before = (rank + 1) % size, (rank - 1) % size
    # One call does both, so it cannot deadlock, however long the message is.
    communicator.Sendrecv(outgoing, dest=after, recvbuf=incoming, source=before)


def scatter_reduce(vector, bounds, communicator):
    """Add up the ranks' vectors in place, until each rank holds the finished sum of one chunk."""
    rank, size = communicator.Get_rank(), communicator.Get_size()
    # Step 3: In size - 1 rounds send one chunk to the next rank, and add the chunk that comes in to
    # the same chunk of your own vector. In the first round rank r sends chunk r; afterwards each
    # rank sends the chunk that it has just added to.
    for turn in range(size - 1):
        out_start, out_end = bounds[(rank - turn) % size]
        in_start, in_end = bounds[(rank - turn - 1) % size]
        incoming = np.empty(in_end - in_start)
        exchange(vector[out_start:out_end], incoming, communicator)
        vector[in_start:in_end] += incoming


def allgather(vector, bounds, communicator):
    """Pass the finished chunks round, until every rank holds all of them."""
    rank, size = communicator.Get_rank(), communicator.Get_size()
    # Step 4: In size - 1 rounds send one finished chunk on and put the one that comes in into its
    # place. After step 3, rank r holds the finished chunk r + 1 (modulo size).
    for turn in range(size - 1):
        out_start, out_end = bounds[(rank + 1 - turn) % size]
        in_start, in_end = bounds[(rank - turn) % size]
        # The chunk lands in the vector itself: no copy.
        exchange(vector[out_start:out_end], vector[in_start:in_end], communicator)


def ring_allreduce(vector, communicator):
    """Replace the vector by the sum of all ranks' vectors, on every rank."""
    bounds = chunk_bounds(len(vector), communicator.Get_size())
    report("bounds", bounds)
    scatter_reduce(vector, bounds, communicator)
    report("scattered", sample(vector))
    allgather(vector, bounds, communicator)


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
