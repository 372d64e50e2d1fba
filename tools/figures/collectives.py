"""One figure for each collective: what four ranks hold before and after it."""

from collections.abc import Sequence

from figures.drawing import NORMAL, SMALL, TITLE, Canvas, tint, value_row
from hvdcourse.plots.palette import INK, PANEL, QUIET, RANK_COLORS, SLATE, WHITE
from hvdcourse.simulate.collectives import Collective, Row, collective

RANKS = range(4)
WIDTH, ROW, TOP = 620, 40, 50


def draw_rows(canvas: Canvas, left: float, rows: Sequence[Row], box_width: float) -> None:
    """Draw what each rank holds, one row a rank, with the rank's name in front."""
    for rank, boxes in enumerate(rows):
        y = TOP + rank * ROW
        canvas.text((left, y + 14), f"rank {rank}", ha="left", color=INK)
        colors = [SLATE if origin is None else RANK_COLORS[origin] for _, origin in boxes]
        value_row(canvas, (left + 56, y), [value for value, _ in boxes], colors, (box_width, 28))


def draw_before_after(shown: Collective, box_width: float = 38) -> Canvas:
    """Draw both states side by side, with the collective's name on the arrow between them."""
    name, call, before, after = shown.name, shown.call, shown.before, shown.after
    canvas = Canvas(WIDTH, TOP + 4 * ROW + 8, f"{name} on 4 ranks, before and after")
    widths = [56 + box_width * max(map(len, rows)) for rows in (before, after)]
    gap = (WIDTH - sum(widths)) / 3
    lefts = (gap * 0.62, WIDTH - widths[1] - gap * 0.62)
    for left, width, rows, word in zip(
        lefts, widths, (before, after), ("before", "after"), strict=True
    ):
        canvas.box((left - 12, 12), (width + 21, TOP + 4 * ROW - 12), fill=PANEL, round=8)
        canvas.text((left + width / 2, 30), word, TITLE, color=QUIET)
        draw_rows(canvas, left, rows, box_width)
    start, end = lefts[0] + widths[0] + 17, lefts[1] - 20
    middle, y = (start + end) / 2, TOP + 2 * ROW - 6
    canvas.text((middle, y - 20), name, TITLE, weight="bold")
    canvas.arrow((start, y), (end, y), INK, line=2.2, head=16)
    canvas.text((middle, y + 20), call, SMALL, color=QUIET)
    return canvas


def draw_allreduce() -> Canvas:
    """Every rank gets the sum of all ranks' values."""
    return draw_before_after(collective("allreduce"), 44)


def draw_allgather() -> Canvas:
    """Every rank gets all ranks' values, one after the other; lengths may differ."""
    return draw_before_after(collective("allgather"))


def draw_broadcast() -> Canvas:
    """Every rank gets the root's values."""
    return draw_before_after(collective("broadcast"))


def draw_alltoall() -> Canvas:
    """Rank r gets the r-th part of every rank's values."""
    return draw_before_after(collective("alltoall"))


def draw_reducescatter() -> Canvas:
    """Rank r gets the r-th part of the sum of all ranks' values."""
    return draw_before_after(collective("reducescatter"), 50)


def draw_barrier() -> Canvas:
    """A time line: nobody goes on before the last rank has arrived."""
    left, unit, top, row = 74, 100, 62, 38
    canvas = Canvas(WIDTH, 262, "barrier on 4 ranks, as a time line")
    released = left + 4 * unit
    for rank in RANKS:
        y, arrival = top + rank * row, left + (rank + 1) * unit
        canvas.text((14, y + 12), f"rank {rank}", ha="left")
        color = RANK_COLORS[rank]
        canvas.bar((left, y), (arrival - left, 24), tint(color, 0.45), color)
        if arrival < released:
            canvas.bar((arrival, y), (released - arrival, 24), WHITE, QUIET, hatch="///")
        canvas.bar((released, y), (100, 24), tint(color, 0.45), color)
    bottom = top + 4 * row - 2
    canvas.line([(released, top - 12), (released, bottom)], INK, line=2.2)
    canvas.text((released, 24), "the last rank arrives:\nall ranks go on", SMALL)
    canvas.arrow((left, bottom + 10), (WIDTH - 26, bottom + 10), QUIET)
    for tick in range(1, 5):
        x = left + tick * unit
        canvas.line([(x, bottom + 6), (x, bottom + 14)])
        canvas.text((x, bottom + 25), f"{0.2 * tick:.1f} s", SMALL, color=QUIET)
    canvas.text((left + 474, bottom + 25), "time", SMALL, color=QUIET)
    canvas.bar((left, 18), (26, 14), tint(QUIET, 0.35), QUIET)
    canvas.text((left + 34, 25), "works", NORMAL, ha="left")
    canvas.bar((left + 96, 18), (26, 14), WHITE, QUIET, hatch="///")
    canvas.text((left + 130, 25), "waits in the barrier", NORMAL, ha="left")
    return canvas
