"""Right: every rank gathers all vectors, and takes their mean itself."""

import argparse

import horovod.tensorflow as hvd
import numpy as np

from hvdcourse import report

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--numbers", type=int, default=10)
arguments = parser.parse_args()

hvd.init()
own = np.random.default_rng().normal(size=arguments.numbers)
report("own", own)
report("mean", hvd.allgather(own[None]).numpy().mean(axis=0))
