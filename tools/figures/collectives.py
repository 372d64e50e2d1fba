"""One figure for each collective: what four ranks hold before and after it."""

from collections.abc import Sequence

from figures.drawing import NORMAL, SMALL, TITLE, Canvas, tint, value_row
from hvdcourse.plots.palette import INK, PANEL, QUIET, RANK_COLOURS, SLATE, WHITE

RANKS = range(4)
WIDTH, ROW, TOP = 620, 40, 50

# One box: its value and the rank that it comes from, or None where ranks were combined.
Boxes = Sequence[tuple[object, int | None]]


def of_rank(rank: int, values: Sequence[object]) -> Boxes:
    """Return boxes whose values all come from one rank."""
    return [(value, rank) for value in values]


def combined(values: Sequence[object]) -> Boxes:
    """Return boxes whose values are made of all ranks' values."""
    return [(value, None) for value in values]


def draw_rows(canvas: Canvas, left: float, rows: Sequence[Boxes], box_width: float) -> None:
    """Draw what each rank holds, one row a rank, with the rank's name in front."""
    for rank, boxes in enumerate(rows):
        y = TOP + rank * ROW
        canvas.text((left, y + 14), f"rank {rank}", ha="left", color=INK)
        colours = [SLATE if origin is None else RANK_COLOURS[origin] for _, origin in boxes]
        value_row(canvas, (left + 56, y), [value for value, _ in boxes], colours, (box_width, 28))


def draw_before_after(
    name: str, call: str, before: Sequence[Boxes], after: Sequence[Boxes], box_width: float = 38
) -> Canvas:
    """Draw both states side by side, with the collective's name on the arrow between them."""
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
    before = [of_rank(rank, [rank + 1, 10 * (rank + 1)]) for rank in RANKS]
    return draw_before_after("allreduce", "op = Sum", before, [combined([10, 100])] * 4, 44)


def draw_allgather() -> Canvas:
    """Every rank gets all ranks' values, one after the other; lengths may differ."""
    before = [of_rank(rank, [10 * rank + i for i in range(1 + rank % 2)]) for rank in RANKS]
    after = [box for boxes in before for box in boxes]
    return draw_before_after("allgather", "in rank order", before, [after] * 4)


def draw_broadcast() -> Canvas:
    """Every rank gets the root's values."""
    before = [of_rank(rank, [10 * rank + i for i in range(3)]) for rank in RANKS]
    return draw_before_after("broadcast", "root_rank = 2", before, [before[2]] * 4)


def draw_alltoall() -> Canvas:
    """Rank r gets the r-th part of every rank's values."""
    before = [of_rank(rank, [10 * rank + i for i in RANKS]) for rank in RANKS]
    after = [[before[sender][rank] for sender in RANKS] for rank in RANKS]
    return draw_before_after("alltoall", "equal parts", before, after)


def draw_reducescatter() -> Canvas:
    """Rank r gets the r-th part of the sum of all ranks' values."""
    before = [of_rank(rank, [(rank + 1) * 10**i for i in RANKS]) for rank in RANKS]
    after = [combined([10 * 10**rank]) for rank in RANKS]
    return draw_before_after("reducescatter", "op = Sum", before, after, 50)


def draw_barrier() -> Canvas:
    """A time line: nobody goes on before the last rank has arrived."""
    left, unit, top, row = 74, 100, 62, 38
    canvas = Canvas(WIDTH, 262, "barrier on 4 ranks, as a time line")
    released = left + 4 * unit
    for rank in RANKS:
        y, arrival = top + rank * row, left + (rank + 1) * unit
        canvas.text((14, y + 12), f"rank {rank}", ha="left")
        colour = RANK_COLOURS[rank]
        canvas.bar((left, y), (arrival - left, 24), tint(colour, 0.45), colour)
        if arrival < released:
            canvas.bar((arrival, y), (released - arrival, 24), WHITE, QUIET, hatch="///")
        canvas.bar((released, y), (100, 24), tint(colour, 0.45), colour)
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
