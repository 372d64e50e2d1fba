"""One data-parallel training step, and what Horovod's wrapped optimizer does in it."""

import itertools

from figures.drawing import NORMAL, SMALL, TITLE, Canvas, tint
from hvdcourse.plots.palette import BLUE, INK, PANEL, QUIET, RANK_COLORS, SLATE, WHITE

# One weight, the rate, and each rank's gradient; chosen so that the mean is a round number.
WEIGHT, RATE, GRADIENTS = 0.5, 0.1, (0.2, 0.6, 0.1)
LANE, BOX_HEIGHT, TOP = 52, 34, 44
# Left edge and width of each column.
BATCH, FORWARD, BACKWARD, GRADIENT = (130, 74), (218, 62), (294, 66), (374, 42)
START, ALLREDUCE, UPDATE, END = (66, 50), (430, 68), (512, 50), (578, 50)


def draw_lane(canvas: Canvas, rank: int, mean: float) -> None:
    """Draw what one rank does in the step, from left to right."""
    y, color = TOP + rank * LANE, RANK_COLORS[rank]
    middle = y + BOX_HEIGHT / 2
    canvas.text((14, middle), f"rank {rank}", ha="left")
    columns = (
        (START, f"{WEIGHT:.2f}", SLATE, WHITE),
        (BATCH, f"images\n{32 * rank} to {32 * rank + 31}", WHITE, INK),
        (FORWARD, "forward", tint(color), INK),
        (BACKWARD, "backward", tint(color), INK),
        (GRADIENT, f"{GRADIENTS[rank]:.1f}", tint(color), INK),
        (UPDATE, f"− {RATE * mean:.2f}", PANEL, INK),
        (END, f"{WEIGHT - RATE * mean:.2f}", SLATE, WHITE),
    )
    for (left, width), label, fill, ink in columns:
        edge = SLATE if fill in (SLATE, PANEL) else color
        font = 9.5 if "\n" in label else SMALL
        label = {"label": label, "font": font, "color": ink, "bold": fill == SLATE}
        canvas.box((left, y), (width, BOX_HEIGHT), fill, edge, **label)
    order = (START, BATCH, FORWARD, BACKWARD, GRADIENT, ALLREDUCE, UPDATE, END)
    for (left, width), (right, _) in itertools.pairwise(order):
        canvas.arrow((left + width + 1, middle), (right - 1, middle), INK, head=8)


def draw_data_parallel_step() -> Canvas:
    """Draw three ranks that compute gradients alone, average them, and make the same update."""
    canvas = Canvas(640, 258, "One data-parallel training step on 3 ranks")
    mean = sum(GRADIENTS) / len(GRADIENTS)
    bottom = TOP + (len(GRADIENTS) - 1) * LANE + BOX_HEIGHT
    headings = ((START, "weight"), (BATCH, "own batch"), (GRADIENT, "gradient"), (END, "weight"))
    for (left, width), heading in (*headings, (UPDATE, "update")):
        canvas.text((left + width / 2, TOP - 20), heading, SMALL, color=QUIET)
    for rank in range(len(GRADIENTS)):
        draw_lane(canvas, rank, mean)
    size = (ALLREDUCE[1], bottom - TOP + 16)
    canvas.box((ALLREDUCE[0], TOP - 8), size, SLATE, SLATE, round=5)
    middle = ALLREDUCE[0] + ALLREDUCE[1] / 2
    canvas.text((middle, (TOP + bottom) / 2 - 17), "allreduce", SMALL, color=WHITE, weight="bold")
    canvas.text((middle, (TOP + bottom) / 2 + 11), f"mean\n{mean:.1f}", NORMAL, color=WHITE)
    parts = (
        (START[0], GRADIENT[0] + GRADIENT[1], "each rank works alone"),
        (ALLREDUCE[0], ALLREDUCE[0] + ALLREDUCE[1], "all ranks\ntogether"),
        (UPDATE[0], END[0] + END[1], f"rate {RATE}: same update,\nequal weights"),
    )
    for left, right, words in parts:
        canvas.bracket((left, bottom + 18), (right, bottom + 18), 7)
        canvas.text(((left + right) / 2, bottom + 46), words, SMALL)
    return canvas


LAYERS, ROW, LIST_TOP = (4, 3, 2, 1), 36, 84
SUBSCRIPTS = "₀₁₂₃₄"


def draw_wrapped_optimizer() -> Canvas:
    """Draw an allreduce for each gradient between the backward pass and the optimizer inside."""
    canvas = Canvas(640, 316, "What hvd.DistributedOptimizer does on one rank")
    canvas.box((148, 14), (370, 222), PANEL, SLATE, round=8, line=1.6)
    name = "hvd.DistributedOptimizer(optimizer)"
    canvas.text((333, 36), name, NORMAL, weight="bold")
    for x, words in ((74, "backward pass"), (226, "one allreduce each"), (337, "mean")):
        canvas.text((x, 64), words, SMALL, color=QUIET)
    color = RANK_COLORS[0]
    for row, layer in enumerate(LAYERS):
        y, sign = LIST_TOP + row * ROW, SUBSCRIPTS[layer]
        middle = y + 13
        fonts = {"font": SMALL}
        canvas.box((14, y), (66, 26), tint(color), color, label=f"layer {layer}", **fonts)
        canvas.box((100, y), (34, 26), WHITE, color, label=f"g{sign}", **fonts)
        canvas.arrow((81, middle), (99, middle), INK, head=8)
        canvas.arrow((135, middle), (169, middle), INK, head=8)
        label = {"label": f"allreduce g{sign}", "color": WHITE, **fonts}
        canvas.box((170, y), (112, 26), SLATE, SLATE, **label)
        canvas.arrow((283, middle), (319, middle), INK, head=8)
        canvas.box((320, y), (34, 26), WHITE, SLATE, label=f"ḡ{sign}", **fonts)
        canvas.arrow((355, middle), (389, middle), INK, head=8)
    bottom = LIST_TOP + 3 * ROW + 26
    middle = (LIST_TOP + bottom) / 2
    canvas.box((390, LIST_TOP), (112, bottom - LIST_TOP), tint(BLUE, 0.18), BLUE, round=5, line=1.6)
    canvas.text((446, middle - 22), "optimizer", TITLE, weight="bold")
    canvas.text((446, middle + 14), "the one that\nyou gave it,\nunchanged", SMALL)
    canvas.arrow((503, middle), (549, middle), INK)
    label = {"label": "weights", "color": WHITE, "bold": True}
    canvas.box((550, middle - 17), (78, 34), SLATE, SLATE, **label)
    canvas.arrow((226, bottom + 4), (226, 262), INK, both=True, head=9)
    canvas.box((148, 264), (156, 38), WHITE, QUIET, round=6, dashed=True)
    canvas.text((226, 282), "the other ranks\ndo the same", SMALL)
    words = "The optimizer sees mean gradients\nonly, the same on every rank."
    canvas.text((325, 282), words, SMALL, ha="left", color=QUIET)
    return canvas
