"""Short stand-ins for arrays, to compare them between ranks and runs.

A fingerprint is linear: the mean of arrays has the mean of their fingerprints. Two arrays that
differ have, but for a chance that cannot be met with, different ones.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

PROJECTIONS = 6


@functools.cache
def directions(length: int, count: int) -> np.ndarray:
    """Return random directions of shape (length, count), the same in every process."""
    return np.random.default_rng(length).standard_normal((length, count))


def fingerprints(arrays: Sequence[np.ndarray]) -> list[list[float]]:
    """Return for every array its projections on PROJECTIONS directions, and last its norm."""
    rows = []
    for array in arrays:
        flat = np.asarray(array, np.float64).ravel()
        projected = flat @ directions(flat.size, PROJECTIONS)
        rows.append([*projected.tolist(), float(np.linalg.norm(flat))])
    return rows


def identities(samples: np.ndarray) -> list[float]:
    """Return one number for each sample (first axis), by which it can be told from others."""
    samples = np.asarray(samples, np.float64)
    # Of an empty batch, -1 would not tell the length.
    flat = samples.reshape(len(samples), int(np.prod(samples.shape[1:])))
    return np.round(flat @ directions(flat.shape[1], 1)[:, 0], 8).tolist()


def number_of_bytes(data: Any) -> int:
    """Return the size of an array, a tensor, or a list of them; 0 for what has no known size."""
    if isinstance(data, list | tuple):
        return sum(number_of_bytes(item) for item in data)
    of_variable = getattr(data, "_handle_data", None)
    if of_variable is not None:
        # The handle of a variable: counted as if its numbers have 32 bits.
        return 4 * math.prod(dim.size for dim in of_variable.shape_and_type[0].shape.dim)
    size = getattr(data, "nbytes", None)
    if size is None and hasattr(data, "shape"):
        # In a graph a tensor has no values yet, but it does have a shape.
        size = (data.shape.num_elements() or 0) * data.dtype.size
    return int(size or 0)
