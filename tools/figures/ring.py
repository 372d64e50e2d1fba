"""The parameter server and the ring, and the ring allreduce step by step."""

from math import cos, radians, sin

from figures.drawing import NORMAL, SMALL, TITLE, Canvas, tint
from hvdcourse.plots.palette import INK, PANEL, QUIET, RANK_COLORS, SLATE, VERMILION, WHITE
from hvdcourse.simulate.collectives import RingState, ring_states

N = 4
NODE = (72, 30)


def draw_node(canvas: Canvas, middle: tuple[float, float], rank: int, label: str = "") -> None:
    """Draw one rank as a box around its middle."""
    color = RANK_COLORS[rank]
    at = (middle[0] - NODE[0] / 2, middle[1] - NODE[1] / 2)
    canvas.box(at, NODE, tint(color), color, label=label or f"rank {rank}", round=6, line=1.6)


def draw_server(canvas: Canvas) -> None:
    """Draw rank 0 as worker and server; every other rank exchanges whole vectors with it."""
    canvas.box((10, 10), (302, 300), PANEL, round=8)
    canvas.text((161, 34), "parameter server", TITLE, weight="bold")
    top = (161, 92)
    for rank, x in zip((1, 2, 3), (60, 161, 262), strict=True):
        lean = (x - top[0]) * 0.28
        canvas.arrow((x - 7, 190), (top[0] + lean - 7, 111), RANK_COLORS[rank], line=2)
        canvas.arrow((top[0] + lean + 7, 111), (x + 7, 190), RANK_COLORS[0], line=2)
        draw_node(canvas, (x, 208), rank)
    canvas.box((105, 66), (112, 42), tint(RANK_COLORS[0]), RANK_COLORS[0], line=1.6, round=6)
    canvas.text((161, 87), "rank 0\nworker and server", SMALL)
    words = "into rank 0: (n − 1) · S bytes\nout of rank 0: (n − 1) · S bytes"
    canvas.text((161, 270), words, NORMAL)


def draw_ring(canvas: Canvas) -> None:
    """Draw every rank as sender to its right neighbor only."""
    canvas.box((326, 10), (304, 300), PANEL, round=8)
    canvas.text((478, 34), "ring", TITLE, weight="bold")
    center, radii = (478, 143), (96, 68)
    angles = (-90, 0, 90, 180)
    points = [
        (center[0] + radii[0] * cos(radians(a)), center[1] + radii[1] * sin(radians(a)))
        for a in angles
    ]
    ends = (
        ((520, 80), (574, 122)),
        ((574, 164), (520, 206)),
        ((436, 206), (382, 164)),
        ((382, 122), (436, 80)),
    )
    for rank, (start, end) in enumerate(ends):
        canvas.arrow(start, end, RANK_COLORS[rank], line=2, bend=0.2)
        draw_node(canvas, points[rank], rank)
    canvas.text(center, "one chunk of\nS / n bytes\nper message", SMALL, color=QUIET)
    words = "into and out of each rank:\n2 · (n − 1) / n · S bytes"
    canvas.text((478, 270), words, NORMAL)


def draw_parameter_server_and_ring() -> Canvas:
    """Draw the two ways to average a vector of S bytes with messages between two ranks each."""
    canvas = Canvas(640, 320, "Parameter server and ring on 4 ranks")
    draw_server(canvas)
    draw_ring(canvas)
    return canvas


BOX, GAP = (30, 25), 15


def draw_arrival(canvas: Canvas, x: float, y: float, comes_from_last: bool) -> None:
    """Draw the arrow into a chunk; one that comes from the last rank starts below the panel."""
    canvas.arrow((x, y - GAP + 1), (x, y - 1), VERMILION, line=1.6, head=8)
    if comes_from_last:
        bottom = y + N * (BOX[1] + GAP) - GAP
        canvas.line([(x, bottom + 1), (x, bottom + 12)], VERMILION, line=1.6)


def draw_state(canvas: Canvas, left: float, top: float, state: RingState) -> None:
    """Draw what all ranks hold after one step; arrows lead to the chunks that have arrived."""
    canvas.text((left + 2 * BOX[0], top - 26), state.title, NORMAL, weight="bold")
    for rank in range(N):
        for chunk in range(N):
            x, y = left + chunk * BOX[0], top + rank * (BOX[1] + GAP)
            is_full = state.parts[rank, chunk] == N
            has_arrived = (rank, chunk) in state.arrived
            canvas.box(
                (x, y),
                (BOX[0] - 3, BOX[1]),
                fill=SLATE if is_full else tint(RANK_COLORS[chunk]),
                edge=VERMILION if has_arrived else RANK_COLORS[chunk],
                line=2.4 if has_arrived else 1.0,
                label=state.held[rank, chunk],
                color=WHITE if is_full else INK,
                font=11,
            )
            if has_arrived:
                draw_arrival(canvas, x + (BOX[0] - 3) / 2, y, rank == 0)


def draw_legend(canvas: Canvas, x: float, y: float) -> None:
    """Explain the marks of the step-by-step figure."""
    canvas.arrow((x + 11, y - 14), (x + 11, y - 1), VERMILION, line=1.6, head=8)
    canvas.box((x, y), (22, 18), WHITE, VERMILION, line=2.4)
    canvas.text((x + 32, y + 9), "has just arrived", SMALL, ha="left")
    canvas.box((x, y + 36), (22, 18), SLATE, SLATE)
    canvas.text((x + 32, y + 45), "the full sum", SMALL, ha="left")
    words = "In every step each rank\nsends one chunk to the\nnext rank; rank 3 sends\nto rank 0."
    canvas.text((x, y + 106), words, SMALL, ha="left", color=QUIET)


def draw_ring_allreduce_steps() -> Canvas:
    """Draw the start, three steps of scatter-reduce and three steps of allgather."""
    canvas = Canvas(626, 436, "Ring allreduce on 4 ranks, step by step")
    left, width, tops = 62, 147, (54, 262)
    for position, state in enumerate(ring_states(N)):
        row, column = (0, position) if position < N else (1, position - N + 1)
        draw_state(canvas, left + column * width, tops[row], state)
    for top, shift in zip(tops, (0, width), strict=True):
        for rank in range(N):
            y = top + rank * (BOX[1] + GAP) + BOX[1] / 2
            canvas.text((left + shift - 8, y), f"rank {rank}", SMALL, ha="right")
    draw_legend(canvas, 12, tops[1] - 14)
    return canvas
