"""Tells which known image a sample is, however it was decoded, scaled, mirrored or turned."""

from collections.abc import Sequence

import numpy as np

from hvdcourse.rank.fingerprints import directions

CELLS, NUMBERS = 8, 16
# Two images are about sqrt(2) apart; decoders and 8 bits make differences of a hundredth.
SAME = 0.1


def thumbnails(samples: np.ndarray) -> np.ndarray:
    """Return NUMBERS numbers for each sample: float of shape (samples, NUMBERS).

    They stay the same when an image is made lighter or darker, or scaled to other numbers.

    Args:
        samples: images, of shape (count, height, width, channels).
    """
    return project(cells_of(samples))


def cells_of(samples: np.ndarray) -> np.ndarray:
    """Return the means of CELLS x CELLS parts of each image, standardized."""
    cells = np.asarray(samples, np.float64)
    for axis in (1, 2):
        length = cells.shape[axis]
        starts = np.linspace(0, length, CELLS, endpoint=False).astype(int)
        sizes = np.diff([*starts, length])
        shape = [1] * cells.ndim
        shape[axis] = -1
        cells = np.add.reduceat(cells, starts, axis) / sizes.reshape(shape)
    cells = cells - cells.mean(axis=(1, 2, 3), keepdims=True)
    return cells / np.maximum(cells.std(axis=(1, 2, 3), keepdims=True), 1e-9)


def project(cells: np.ndarray) -> np.ndarray:
    """Return standardized cells as NUMBERS numbers of about unit length together."""
    flat = cells.reshape(len(cells), -1)
    return flat @ directions(flat.shape[1], NUMBERS) / np.sqrt(flat.shape[1] * NUMBERS)


def all_views(images: np.ndarray) -> np.ndarray:
    """Return the thumbnails of images as they are, turned and mirrored: (8, images, NUMBERS)."""
    cells = cells_of(images)
    turned = [np.rot90(cells, turns, axes=(1, 2)) for turns in range(4)]
    return np.stack([project(v) for view in turned for v in (view, view[:, :, ::-1])])


def recognized(samples: Sequence[Sequence[float]], views: np.ndarray) -> np.ndarray:
    """Return the number of the known image that each thumbnail shows, or -1: int64 (samples,).

    Args:
        samples: thumbnails.
        views: of the known images, as ``all_views`` returns them, or a part of these.
    """
    known = views.reshape(-1, NUMBERS)
    numbers = []
    for start in range(0, len(samples), 500):
        part = np.asarray(samples[start : start + 500], np.float64).reshape(-1, NUMBERS)
        squared = (part**2).sum(1)[:, None] - 2 * part @ known.T + (known**2).sum(1)
        nearest = squared.argmin(axis=1)
        near = squared[np.arange(len(part)), nearest] < SAME**2
        numbers.append(np.where(near, nearest % views.shape[1], -1))
    return np.concatenate(numbers) if numbers else np.empty(0, np.int64)
