"""How many images a second a training script goes through, on a chosen number of cores."""

from pathlib import Path
from typing import Any

import numpy as np

from hvdcourse.launch.run import run_quickly


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
    result = run_quickly(script, np_, cores=cores, **options)
    return np.array(result.history["images_per_second"][1:])
