"""Short stand-ins for arrays, to compare them between ranks and runs.

A fingerprint is linear: the mean of arrays has the mean of their fingerprints. Two arrays that
differ have, but for a chance that cannot be met with, different ones.
"""

import functools
from collections.abc import Sequence

import numpy as np

PROJECTIONS = 6


@functools.cache
def directions(length: int, count: int) -> np.ndarray:
    """Return random directions of shape (length, count), the same in every process."""
    return np.random.default_rng(length).standard_normal((length, count))


def fingerprints(arrays: Sequence[np.ndarray]) -> list[list[float]]:
    """Return for every array its projections on PROJECTIONS directions, and last its norm."""
    found = []
    for array in arrays:
        flat = np.asarray(array, np.float64).ravel()
        projected = flat @ directions(flat.size, PROJECTIONS)
        found.append([*projected.tolist(), float(np.linalg.norm(flat))])
    return found


def identities(samples: np.ndarray) -> list[float]:
    """Return one number for each sample (first axis), by which it can be told from others."""
    samples = np.asarray(samples, np.float64)
    # Of an empty batch, -1 would not tell the length.
    flat = samples.reshape(len(samples), int(np.prod(samples.shape[1:])))
    return np.round(flat @ directions(flat.shape[1], 1)[:, 0], 8).tolist()
