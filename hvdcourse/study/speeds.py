"""How many images a second a training script goes through, on a chosen number of cores."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hvdcourse.launch.run import run_quickly
from hvdcourse.machine.cores import pick_cores
from hvdcourse.machine.gpus import gpus_for


@contextmanager
def only_on(cores: Collection[int]) -> Iterator[None]:
    """Keep this process, and what it starts, to these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def images_per_second(script: str | Path, np_: int, cores: int, **options: Any) -> np.ndarray:
    """Run a script, and return the throughput of all its ranks together.

    Args:
        script: one that reports its epochs, as ``ReportMetrics`` does.
        np_: the number of ranks.
        cores: how many cores they share; on a machine with a GPU for each they have all of them.
        **options: as for ``run_quickly``: ``epochs=3`` becomes ``--epochs 3``.

    Returns:
        Images per second, float64 of shape (epochs - 1,): in the first epoch TensorFlow also
        builds its graph, so that it is left out.
    """
    with only_on(os.sched_getaffinity(0) if gpus_for(np_) else pick_cores(cores)):
        result = run_quickly(script, np_, **options)
    return np.array(result.history["images_per_second"][1:])
