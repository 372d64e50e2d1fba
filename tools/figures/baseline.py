"""The figure of an input pipeline: the stations between a file and the device."""

from figures.drawing import NORMAL, SMALL, TITLE, Canvas, tint
from hvdcourse.plots.palette import BLUE, INK, PANEL, QUIET, VERMILION

STATIONS = (
    ("read", "bytes of\none file"),
    ("decode", "pixels"),
    ("cache", "kept in\nmemory"),
    ("shuffle", "another\norder"),
    ("augment", "changed\nat random"),
    ("batch", "B images\ntogether"),
    ("prefetch", "the next\nbatches"),
)
LEFT, TOP, WIDTH, HEIGHT, GAP = 26, 62, 62, 78, 12
RANDOM_FROM = 3


def draw_input_pipeline() -> Canvas:
    """Draw the stations from left to right, what is always equal in them, and the device."""
    canvas = Canvas(640, 232, "The stations of an input pipeline")
    pitch = WIDTH + GAP
    end = LEFT + len(STATIONS) * pitch
    canvas.box((12, 14), (end - 12, 204), PANEL, round=8)
    canvas.text((26, 36), "processor", TITLE, ha="left", weight="bold")
    for number, (name, result) in enumerate(STATIONS):
        x = LEFT + number * pitch
        canvas.box((x, TOP), (WIDTH, HEIGHT), tint(VERMILION, 0.22), VERMILION, line=1.4, round=5)
        canvas.text((x + WIDTH / 2, TOP + 20), name, SMALL, weight="bold")
        canvas.text((x + WIDTH / 2, TOP + 51), result, 9)
        after = x + WIDTH
        canvas.arrow(
            (after + 1, TOP + HEIGHT / 2), (after + GAP - 1, TOP + HEIGHT / 2), INK, head=8
        )
    device = end + 6
    canvas.box((device, 14), (640 - device - 8, 204), tint(BLUE, 0.18), BLUE, line=1.4, round=8)
    middle = (device + 632) / 2
    canvas.text((middle, 36), "device", TITLE, weight="bold")
    canvas.text((middle, TOP + HEIGHT / 2), "training\nstep", NORMAL)
    y = TOP + HEIGHT + 16
    split = LEFT + RANDOM_FROM * pitch
    canvas.bracket((LEFT, y), (split - GAP - 2, y), 7)
    canvas.bracket((split, y), (end - GAP, y), 7)
    canvas.text(
        ((LEFT + split - GAP) / 2, y + 28),
        "the same in every epoch:\ndo it once",
        SMALL,
        color=QUIET,
    )
    canvas.text(
        ((split + end - GAP) / 2, y + 28),
        "other choices in every epoch:\ndo it each time, but ahead of time",
        SMALL,
        color=QUIET,
    )
    return canvas
