"""Published training times of one network on one data set against the number of GPUs."""

from math import log

from figures.drawing import NORMAL, SMALL, Canvas
from hvdcourse.plots.palette import BLUE, INK, LINE, QUIET, VERMILION

# ResNet-50 on ImageNet to about 75 % or more of the test images: GPUs, their kind, minutes, paper
# (arXiv), and where its words stand. The 29 hours are the start of the first paper's comparison.
RECORDS = (
    (8, "P100", 29 * 60, "1706.02677", (14, -24), "left"),
    (256, "P100", 60, "1706.02677", (-14, 14), "right"),
    (1024, "P100", 15, "1711.04325", (14, -18), "left"),
    (2048, "P40", 6.6, "1807.11205", (14, -10), "left"),
    (2048, "V100", 74.7 / 60, "1903.12650", (14, -20), "left"),
)
TIMES = ((1, "1 minute"), (10, "10 minutes"), (60, "1 hour"), (600, "10 hours"), (1440, "1 day"))
GPUS = (8, 32, 128, 512, 2048, 8192)
LEFT, RIGHT, TOP, BOTTOM = 92, 626, 30, 300


def place(gpus: float, minutes: float) -> tuple[float, float]:
    """Return where a point stands; both axes are logarithmic."""
    x = LEFT + (RIGHT - LEFT) * log(gpus / 5) / log(50000 / 5)
    y = BOTTOM - (BOTTOM - TOP) * log(minutes / 0.55) / log(2500 / 0.55)
    return x, y


def words_for(minutes: float) -> str:
    """Write a time in the unit in which people would say it."""
    if minutes < 2:
        return f"{60 * minutes:.1f} seconds"
    if minutes < 60:
        return f"{minutes:g} minutes"
    return f"{minutes / 60:g} hour" + ("s" if minutes > 60 else "")


def draw_hours_to_minutes() -> Canvas:
    """Draw training time against GPUs, and the line on which 8 GPUs' work is shared perfectly."""
    canvas = Canvas(640, 352, "Published training times of ResNet-50 on ImageNet against GPUs")
    for minutes, name in TIMES:
        y = place(8, minutes)[1]
        canvas.line([(LEFT, y), (RIGHT, y)], LINE, line=0.8)
        canvas.text((LEFT - 8, y), name, SMALL, ha="right", color=QUIET)
    canvas.line([(LEFT, BOTTOM), (RIGHT, BOTTOM)])
    for gpus in GPUS:
        x = place(gpus, 1)[0]
        canvas.line([(x, BOTTOM), (x, BOTTOM + 5)])
        canvas.text((x, BOTTOM + 17), f"{gpus:,}", SMALL, color=QUIET)
    canvas.text(((LEFT + RIGHT) / 2, BOTTOM + 40), "GPUs (both axes are logarithmic)", SMALL)
    work = RECORDS[0][0] * RECORDS[0][2]
    canvas.line([place(8, work / 8), place(2048, work / 2048)], BLUE, dashed=True, line=1.6)
    canvas.text(
        (LEFT + 210, 98), "dashed: N times the GPUs,\n1/N of the time", SMALL, ha="left", color=BLUE
    )
    for gpus, kind, minutes, paper, (right, down), side in RECORDS:
        x, y = place(gpus, minutes)
        canvas.dot((x, y), 5.5, VERMILION)
        at = (x + right, y + down)
        canvas.text(at, words_for(minutes), NORMAL, ha=side, weight="bold", color=INK)
        source = f"{gpus:,} {kind}, arXiv:{paper}"
        canvas.text((at[0], at[1] + 16), source, SMALL, ha=side, color=QUIET)
    return canvas
