"""The shapes of a painter's strokes: their outlines, and how Pillow draws these.

An outline is coordinates x, y, x, y, … in pixels, for many strokes at once of shape (strokes,
coordinates); ``turn`` is in radians.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from PIL import ImageDraw


def boxes(
    x: np.ndarray, y: np.ndarray, turn: np.ndarray, length: np.ndarray, width: np.ndarray
) -> np.ndarray:
    """Return the squares that circles of these lengths fill."""
    return np.stack([x - length / 2, y - length / 2, x + length / 2, y + length / 2], 1)


def corners(
    signs: Sequence[tuple[int, int]],
    x: np.ndarray,
    y: np.ndarray,
    turn: np.ndarray,
    length: np.ndarray,
    width: np.ndarray,
) -> np.ndarray:
    """Return the corners of polygons, each so many half lengths and half widths from the middle."""
    ax, ay = length / 2 * np.cos(turn), length / 2 * np.sin(turn)
    bx, by = -width / 2 * np.sin(turn), width / 2 * np.cos(turn)
    return np.stack([c for a, b in signs for c in (x + a * ax + b * bx, y + a * ay + b * by)], 1)


ends = partial(corners, ((-1, 0), (1, 0)))
rectangles = partial(corners, ((1, 1), (1, -1), (-1, -1), (-1, 1)))
# They point along the field.
triangles = partial(corners, ((1, 0), (-1, 1), (-1, -1)))

Outline = Callable[..., np.ndarray]
Draw = Callable[[ImageDraw.ImageDraw, list[float], int, float, tuple[int, ...]], None]

STROKES: dict[str, tuple[Outline, Draw]] = {
    "dash": (ends, lambda canvas, at, width, _, color: canvas.line(at, color, width)),
    # A third of a circle.
    "arc": (
        boxes,
        lambda canvas, at, width, turn, color: canvas.arc(at, turn, turn + 130, color, width),
    ),
    "dot": (boxes, lambda canvas, at, width, _, color: canvas.ellipse(at, color)),
    "ring": (boxes, lambda canvas, at, width, _, color: canvas.ellipse(at, None, color, width)),
    "block": (rectangles, lambda canvas, at, width, _, color: canvas.polygon(at, color)),
    "wedge": (triangles, lambda canvas, at, width, _, color: canvas.polygon(at, color)),
}
