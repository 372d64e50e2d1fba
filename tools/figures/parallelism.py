"""How work is shared (data and model parallelism) and how ranks wait (synchronous or not)."""

from figures.drawing import NORMAL, SMALL, TITLE, Canvas, tint
from hvdcourse.plots.palette import INK, PANEL, QUIET, RANK_COLORS, SLATE, VERMILION, WHITE

LAYERS = ("layer 1", "layer 2", "layer 3", "layer 4")
LAYER_SIZE = (74, 26)


def draw_layers(canvas: Canvas, left: float, top: float, names: tuple[str, ...], rank: int) -> None:
    """Draw layers on top of each other in the color of the rank that holds them."""
    color = RANK_COLORS[rank]
    for position, name in enumerate(names):
        at = (left, top + position * 32)
        canvas.box(at, LAYER_SIZE, tint(color), color, label=name, font=SMALL)


def draw_data_parallel(canvas: Canvas) -> None:
    """Draw two ranks with the whole model each and a half of the batch each."""
    canvas.box((10, 10), (300, 326), PANEL, round=8)
    canvas.text((160, 32), "data parallelism", TITLE, weight="bold")
    for rank, left in enumerate((36, 182)):
        middle = left + 37
        canvas.text((middle, 62), f"rank {rank}", NORMAL)
        color = RANK_COLORS[rank]
        label = f"rows {32 * rank}–{32 * rank + 31}"
        canvas.box((left - 8, 76), (90, 26), WHITE, color, label=label, font=SMALL)
        canvas.arrow((middle, 104), (middle, 122), INK)
        draw_layers(canvas, left, 124, LAYERS, rank)
        canvas.box((left, 252), (74, 20), WHITE, SLATE, label="loss", font=SMALL)
        right = left + LAYER_SIZE[0]
        canvas.arrow((right + 8, 264), (right + 8, 126), VERMILION, dashed=True)
        canvas.bracket((right + 14, 128), (right + 14, 244), 8)
        canvas.arrow((right + 22, 244), (right + 22, 293), INK)
        canvas.text((right + 33, 186), "gradients", SMALL, rotation=90)
        canvas.text((middle + 37, 114), "backward", SMALL, color=VERMILION)
    canvas.box((36, 294), (248, 30), SLATE, SLATE, label="allreduce: mean gradients", color=WHITE)


def draw_model_parallel(canvas: Canvas) -> None:
    """Draw two ranks with a half of the model each; the whole batch goes through both."""
    canvas.box((324, 10), (306, 326), PANEL, round=8)
    canvas.text((477, 32), "model parallelism", TITLE, weight="bold")
    for rank, left in enumerate((360, 520)):
        canvas.text((left + 37, 62), f"rank {rank}", NORMAL)
    canvas.box((352, 76), (90, 26), WHITE, RANK_COLORS[0], label="rows 0–63", font=SMALL)
    canvas.arrow((397, 104), (397, 122), INK)
    draw_layers(canvas, 360, 124, LAYERS[:2], 0)
    draw_layers(canvas, 520, 188, LAYERS[2:], 1)
    canvas.arrow((397, 184), (518, 201), INK, bend=0.32)
    canvas.text((448, 236), "activations", SMALL, color=INK)
    canvas.arrow((518, 194), (436, 169), VERMILION, bend=0.2, dashed=True)
    canvas.text((524, 146), "gradients of\nactivations", SMALL, color=VERMILION)
    canvas.arrow((557, 249), (557, 282), INK)
    canvas.box((512, 284), (90, 36), SLATE, SLATE, label="loss", color=WHITE)
    canvas.text((419, 302), "one rank works,\nthe other waits", SMALL, color=QUIET)


def draw_data_and_model_parallel() -> Canvas:
    """Draw both ways to share one training step between two ranks."""
    canvas = Canvas(640, 346, "Data parallelism and model parallelism on 2 ranks")
    draw_data_parallel(canvas)
    draw_model_parallel(canvas)
    return canvas


LANE, BAR, LANES_LEFT, UNIT = 32, 22, 84, 1.0
# How long each rank computes on one batch, in milliseconds.
COMPUTE = (100, 100, 100, 150)
EXCHANGE, SHOWN = 20, 500
# Without waiting, ranks begin a little apart, so that the arrows can be told from each other.
APART = 12


def draw_lanes(canvas: Canvas, top: float, title: str) -> None:
    """Write the panel's title and the ranks' names."""
    canvas.text((14, top), title, TITLE, ha="left", weight="bold")
    for rank in range(4):
        canvas.text((14, top + 34 + rank * LANE), f"rank {rank}", NORMAL, ha="left")


def draw_synchronous(canvas: Canvas, top: float) -> None:
    """Draw steps in which all ranks wait for the slowest one, then average together."""
    draw_lanes(canvas, top, "synchronous: every step ends in one allreduce")
    step = max(COMPUTE) + EXCHANGE
    for number in range(3):
        start = LANES_LEFT + number * step * UNIT
        for rank, compute in enumerate(COMPUTE):
            y = top + 23 + rank * LANE
            color = RANK_COLORS[rank]
            canvas.bar((start, y), (compute * UNIT, BAR), tint(color, 0.45), color)
            wait = max(COMPUTE) - compute
            if wait:
                at = (start + compute * UNIT, y)
                canvas.bar(at, (wait * UNIT, BAR), WHITE, QUIET, hatch="///")
        x = start + max(COMPUTE) * UNIT
        canvas.bar((x, top + 21), (EXCHANGE * UNIT, 3 * LANE + BAR + 4), SLATE, SLATE)
        middle = (x + EXCHANGE * UNIT / 2, top + 23 + (3 * LANE + BAR) / 2)
        canvas.text(middle, "allreduce", SMALL, color=WHITE, rotation=90)


def draw_asynchronous(canvas: Canvas, top: float) -> None:
    """Draw ranks that send their gradients whenever they are ready, and never wait."""
    draw_lanes(canvas, top, "asynchronous: nobody waits")
    words = f"ranks start {APART} ms apart, to tell their arrows apart"
    canvas.text((632, top), words, SMALL, ha="right", color=QUIET)
    server = top + 34 + 4 * LANE
    width = (SHOWN + 2 * EXCHANGE) * UNIT
    canvas.box((LANES_LEFT, server), (width, 24), SLATE, SLATE, round=3)
    words = "parameter server: each gradient that comes updates the weights, which go back"
    canvas.text((LANES_LEFT + width / 2, server + 12), words, SMALL, color=WHITE)
    batches = [
        (rank, APART * rank + number * compute, APART * rank + (number + 1) * compute)
        for rank, compute in enumerate(COMPUTE)
        for number in range((SHOWN + 2 * EXCHANGE - APART * rank) // compute)
    ]
    for rank, start, end in batches:
        x, y = LANES_LEFT + start * UNIT, top + 23 + rank * LANE
        color = RANK_COLORS[rank]
        size = ((end - start) * UNIT, BAR)
        canvas.bar((x, y), size, tint(color, 0.45), color)
        arrival = x + size[0]
        canvas.arrow((arrival, y + BAR), (arrival, server - 1), color, line=1.3, head=8, both=True)
        if rank == len(COMPUTE) - 1:
            others = sum(start < other[2] < end for other in batches)
            words = f"stale by {others} updates"
            canvas.text((x + size[0] / 2, y + BAR / 2), words, SMALL, color=INK)


def draw_synchronous_asynchronous() -> Canvas:
    """Draw both time lines for four ranks of which one is slower."""
    canvas = Canvas(640, 432, "Synchronous and asynchronous training as time lines")
    draw_synchronous(canvas, 22)
    draw_asynchronous(canvas, 202)
    y = 398
    canvas.arrow((LANES_LEFT, y), (632, y), QUIET)
    for milliseconds in range(0, SHOWN + 1, 100):
        x = LANES_LEFT + milliseconds * UNIT
        canvas.line([(x, y - 4), (x, y + 4)])
        canvas.text((x, y + 16), f"{milliseconds}", SMALL, color=QUIET)
    canvas.text((14, y + 16), "time in ms", SMALL, color=QUIET, ha="left")
    x = 492
    canvas.bar((x, 15), (26, 14), WHITE, QUIET, hatch="///")
    canvas.text((x + 34, 22), "waits", SMALL, ha="left")
    return canvas
