"""What each of the seven steps of a distributed script protects: two ranks with it and without."""

from figures.drawing import NORMAL, SMALL, TITLE, Canvas, tint
from hvdcourse.plots.palette import INK, PANEL, QUIET, RANK_COLORS, SLATE, VERMILION, WHITE

# By step: its name, what it protects, and what ranks 0 and 1 have with it and without it. A "+"
# begins what is the same on all ranks, a "!" what goes wrong, and a "~" what a rank does not do.
STEPS = (
    ("its own GPU", "the GPU's memory", ("GPU 0", "GPU 1"), ("!GPU 0", "!GPU 0")),
    ("one voice", "a readable log", ("loss 0.31", "~silent"), ("!loss 0.31", "!loss 0.35")),
    ("mean gradient", "one common model", ("+0.3", "+0.3"), ("!0.2", "!0.4")),
    (
        "equal start",
        "equal weights",
        ("+weight 0.5", "+weight 0.5"),
        ("!weight 0.5", "!weight −0.8"),
    ),
    ("shared images", "the speedup", ("0, 2, 4", "1, 3, 5"), ("!0 to 5", "!0 to 5")),
    ("shared tests", "no test twice", ("180 images", "180 images"), ("!360 images", "!360 images")),
    ("one writer", "the checkpoint", ("saves", "~saves nothing"), ("!saves", "!saves")),
)
NAMES, WITH, WITHOUT, TOP, ROW = 52, 194, 424, 84, 44
BOX, PITCH = (94, 28), 102
# By mark: the colors of the box, its edge and its words.
STYLES = {
    "+": (SLATE, SLATE, WHITE),
    "!": (WHITE, VERMILION, VERMILION),
    "~": (PANEL, QUIET, QUIET),
}


def draw_pair(canvas: Canvas, left: float, y: float, pair: tuple[str, str]) -> None:
    """Draw what the two ranks have."""
    for rank, words in enumerate(pair):
        color = RANK_COLORS[rank]
        fill, edge, ink = STYLES.get(words[0], (tint(color), color, INK))
        text = {"label": words.lstrip("+!~"), "font": SMALL, "color": ink}
        at = (left + rank * PITCH, y)
        canvas.box(at, BOX, fill, edge, dashed=words[0] == "~", **text)


def draw_seven_steps() -> Canvas:
    """Draw a row for each step: its number, its name, and two ranks with it and without it."""
    canvas = Canvas(640, TOP + len(STEPS) * ROW + 40, "What each of the seven steps protects")
    height = TOP + len(STEPS) * ROW - 14
    for left, heading in ((WITH, "with the step"), (WITHOUT, "without it")):
        canvas.box((left - 12, 10), (PITCH + BOX[0] + 24, height), PANEL, round=8)
        canvas.text((left + (PITCH + BOX[0]) / 2, 32), heading, TITLE, weight="bold")
        for rank in range(2):
            middle = left + rank * PITCH + BOX[0] / 2
            canvas.text((middle, 60), f"rank {rank}", SMALL, color=QUIET)
    canvas.text((NAMES, 32), "the step", NORMAL, ha="left")
    canvas.text((NAMES, 50), "and what it protects", 10, ha="left", color=QUIET)
    for row, (name, protects, good, bad) in enumerate(STEPS):
        y = TOP + row * ROW - 6
        canvas.dot((28, y + BOX[1] / 2), 13, SLATE)
        style = {"color": WHITE, "weight": "bold", "zorder": 4}
        canvas.text((28, y + BOX[1] / 2 - 0.8), str(row + 1), NORMAL, **style)
        canvas.text((NAMES, y + 6), name, NORMAL, ha="left")
        canvas.text((NAMES, y + 23), protects, 10, ha="left", color=QUIET)
        draw_pair(canvas, WITH, y, good)
        draw_pair(canvas, WITHOUT, y, bad)
    y = height + 30
    canvas.box((14, y - 8), (24, 16), SLATE, SLATE)
    canvas.text((44, y), "equal on all ranks", SMALL, ha="left")
    canvas.box((194, y - 8), (24, 16), tint(RANK_COLORS[0]), RANK_COLORS[0])
    canvas.text((224, y), "the rank's own", SMALL, ha="left")
    canvas.box((424, y - 8), (24, 16), WHITE, VERMILION)
    canvas.text((454, y), "goes wrong", SMALL, ha="left")
    return canvas
