"""Two ranks send each other a vector: both send first, and only then receive.

Run it:  horovodrun -np 2 --mpi python send_first.py --numbers 100

This script is complete: it is an experiment of lesson 1, not an exercise.
"""

import argparse

import numpy as np
from mpi4py import MPI


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numbers", type=int, default=100, help="float64 numbers in a message")
    numbers = parser.parse_args().numbers
    communicator = MPI.COMM_WORLD
    rank = communicator.Get_rank()
    mine, yours = np.full(numbers, float(rank)), np.empty(numbers)
    communicator.Send(mine, dest=1 - rank)
    communicator.Recv(yours, source=1 - rank)
    print(f"rank {rank} sent {mine.nbytes:,} bytes, and received the {yours[0]:.0f}s", flush=True)


if __name__ == "__main__":
    main()
