"""What the script does, in one sentence: with one process at first, with all ranks in the end.

Run it:    horovodrun -np 2 python new_exercise.py
Check it:  hvdcourse check new_exercise

`report(name, value)` prints a value, and lets the check see it. Leave these lines where they are.
"""

import argparse

import horovod.tensorflow as hvd
import numpy as np

from hvdcourse import report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numbers", type=int, default=10, help="how many numbers a rank draws")
    arguments = parser.parse_args()
    hvd.init()
    own = np.random.default_rng().normal(size=arguments.numbers)
    report("own", own)

    # Step 1: Compute the mean of all ranks' vectors on every rank.
    #: mean = own
    # Every rank gives a vector, and every rank gets the mean.
    mean = hvd.allreduce(own, op=hvd.Average).numpy()
    # End of step 1.
    report("mean", mean)


if __name__ == "__main__":
    main()
