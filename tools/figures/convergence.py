"""Why large batches are hard to train: sharp minima, a rate that warms up, and trust ratios."""

import itertools

import numpy as np

from figures.drawing import NORMAL, SMALL, TITLE, Canvas, tint
from hvdcourse.plots.palette import (
    BLUE,
    GREEN,
    INK,
    LINE,
    ORANGE,
    PANEL,
    QUIET,
    SLATE,
    VERMILION,
    WHITE,
)

# How far the test loss lies beside the training loss, in both panels alike.
SHIFT = 0.32
FLOOR, HEIGHT = 196, 130


def loss(distance: np.ndarray, width: float) -> np.ndarray:
    """Return the loss at distances from a minimum of 0.1; it saturates at 1."""
    return 1 - 0.9 * np.exp(-((distance / width) ** 2) / 2)


def draw_minimum(canvas: Canvas, left: float, name: str, width: float) -> None:
    """Draw the training and the test loss around one minimum, and the gap at the solution."""
    canvas.box((left, 10), (304, 230), PANEL, round=8)
    canvas.text((left + 152, 34), name, TITLE, weight="bold")
    middle = left + 140
    distances = np.linspace(-1.25, 1.45, 109)
    for shift, color in ((0.0, BLUE), (SHIFT, VERMILION)):
        values = loss(distances - shift, width)
        points = [
            (middle + 98 * d, FLOOR - HEIGHT * v) for d, v in zip(distances, values, strict=True)
        ]
        canvas.line(points, color, line=2.2, dashed=bool(shift))
    canvas.line([(left + 14, FLOOR), (left + 290, FLOOR)])
    low, high = (FLOOR - HEIGHT * float(loss(np.array(d), width)) for d in (0.0, SHIFT))
    canvas.line([(middle, low), (middle, FLOOR)], LINE)
    canvas.arrow((middle, low), (middle, high), INK, both=True, head=7, line=1.4)
    canvas.dot((middle, low), 4.5, BLUE)
    canvas.dot((middle, high), 4.5, VERMILION)
    canvas.text((middle, FLOOR + 14), "the solution", SMALL)
    canvas.text((left + 290, FLOOR + 30), "weights", SMALL, ha="right", color=QUIET)


def draw_sharp_and_flat() -> Canvas:
    """Draw a flat and a sharp minimum whose test loss is shifted by the same distance."""
    canvas = Canvas(640, 280, "A flat and a sharp minimum, with training and test loss")
    draw_minimum(canvas, 10, "flat minimum: a small gap", 0.95)
    draw_minimum(canvas, 326, "sharp minimum: a large gap", 0.3)
    for x, color, words in ((24, BLUE, "training loss"), (160, VERMILION, "test loss")):
        canvas.line([(x, 258), (x + 28, 258)], color, line=2.2, dashed=color == VERMILION)
        canvas.text((x + 36, 258), words, SMALL, ha="left")
    canvas.text(
        (630, 258), "drawn, not measured; both are shifted alike", SMALL, ha="right", color=QUIET
    )
    return canvas


# Ranks, and epochs: of the warmup, of the steps down, and in all.
RANKS, WARMUP, DOWN, EPOCHS = 8, 4, (8, 12), 16


def draw_warmup() -> Canvas:
    """Draw the learning rate of 8 ranks by step: the ramp from one rank's rate, and the stairs."""
    canvas = Canvas(640, 276, "A learning-rate schedule with warmup")
    left, right, top, bottom = 96, 612, 62, 242

    def place(epoch: float, rate: float) -> tuple[float, float]:
        return left + (right - left) * epoch / EPOCHS, bottom - (bottom - top) * rate / RANKS

    x = place(WARMUP, 0)[0]
    canvas.bar((left, top - 46), (x - left, bottom - top + 46), tint(ORANGE, 0.25), WHITE)
    canvas.text((left + 8, top - 26), "warmup: a little more\nin every step", SMALL, ha="left")
    for rate, name in ((RANKS, "N · η"), (1, "η")):
        canvas.line([place(0, rate), place(EPOCHS, rate)], LINE)
        canvas.text((left - 10, place(0, rate)[1]), name, NORMAL, ha="right")
    edges = (WARMUP, *DOWN, EPOCHS)
    points = [place(0, 1)]
    for number, (start, end) in enumerate(itertools.pairwise(edges)):
        points += [place(start, RANKS / 10**number), place(end, RANKS / 10**number)]
    canvas.line([place(0, RANKS), place(WARMUP, RANKS)], VERMILION, line=2.2, dashed=True)
    canvas.line(points, BLUE, line=2.6)
    canvas.arrow(place(0, 0), (right + 14, bottom), QUIET)
    canvas.arrow(place(0, 0), (left, top - 50), QUIET)
    canvas.text((left - 10, top - 42), "rate", SMALL, ha="right", color=QUIET)
    for epoch in edges[:-1]:
        at = place(epoch, 0)
        canvas.line([(at[0], bottom - 4), (at[0], bottom + 4)])
        canvas.text((at[0], bottom + 16), f"epoch {epoch}", SMALL, color=QUIET)
    canvas.text((right, bottom + 16), "step", SMALL, color=QUIET)
    for epoch, rate in zip(DOWN, (RANKS / 10, RANKS / 100), strict=True):
        at = place(epoch, rate)
        canvas.text((at[0] + 10, at[1] - 12), "÷ 10", SMALL, ha="left", color=BLUE)
    words = "N times the rate η\nof one rank, for\nN times the batch"
    canvas.text(place(WARMUP + 0.4, RANKS * 0.8), words, SMALL, ha="left", color=BLUE)
    words = "dashed, without warmup:\nthe full rate meets\nuntrained weights"
    canvas.text(place(8.4, RANKS * 0.8), words, SMALL, ha="left", color=VERMILION)
    return canvas


# Three layers: the lengths of their weights and of their updates, chosen to be told apart.
LENGTHS = (("layer 1", 2, 4), ("layer 2", 6, 3), ("layer 3", 12, 1.5))
RATE = 0.02


def draw_trust_ratio() -> Canvas:
    """Draw how far one common rate moves each layer, and how far a rate by trust ratio does."""
    canvas = Canvas(640, 290, "The trust ratio of three layers")
    unit, lefts, top, row = 10, (76, 214, 300, 362, 504), 84, 56
    headings = ("weights ‖x‖", "update ‖u‖", "ratio", "one rate for all", "rate × ratio")
    canvas.box((352, 10), (136, 236), PANEL, round=8)
    canvas.box((494, 10), (136, 236), PANEL, round=8)
    middles = (136, 236, 318, 420, 562)
    for x, heading in zip(middles, headings, strict=True):
        canvas.text((x, 36), heading, SMALL, weight="bold")
    canvas.text((318, 56), "‖x‖ / ‖u‖", SMALL, color=QUIET)
    canvas.text((420, 56), f"{RATE:g} · ‖u‖", SMALL, color=QUIET)
    canvas.text((562, 56), f"{RATE:g} · ratio · ‖u‖", SMALL, color=QUIET)
    for number, (name, weights, update) in enumerate(LENGTHS):
        y = top + number * row
        canvas.text((14, y + 12), name, NORMAL, ha="left")
        canvas.bar((lefts[0], y), (weights * unit, 24), tint(BLUE, 0.45), BLUE)
        canvas.text((lefts[0] + 8, y + 12), f"{weights:g}", SMALL, ha="left")
        canvas.bar((lefts[1], y), (update * unit, 24), tint(GREEN, 0.45), GREEN)
        canvas.text((lefts[1] + update * unit + 6, y + 12), f"{update:g}", SMALL, ha="left")
        canvas.text((318, y + 12), f"{weights / update:g}", TITLE, weight="bold")
        for middle, moved, color in (
            (420, RATE * update / weights, VERMILION),
            (562, RATE, SLATE),
        ):
            canvas.text((middle, y + 6), f"{100 * moved:.2g} %", TITLE, color=color, weight="bold")
            canvas.text((middle, y + 25), "of the layer", SMALL, color=QUIET)
    canvas.text(
        (14, 270),
        "The trust ratio moves every layer by the same part of its length (lengths chosen).",
        NORMAL,
        ha="left",
    )
    return canvas
