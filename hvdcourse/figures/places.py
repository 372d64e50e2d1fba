"""The figure of ranks on two hosts with four slots each."""

from hvdcourse.figures.drawing import (
    INK,
    NORMAL,
    PANEL,
    QUIET,
    RANK_COLOURS,
    SMALL,
    TITLE,
    Canvas,
    tint,
)

HOSTS, SLOTS = 2, 4
LEFT, TOP, CELL, HOST_HEIGHT = 96, 48, 112, 118


def draw_slot(canvas: Canvas, host: int, slot: int) -> None:
    """Draw one process: its rank, its local rank and its cross rank."""
    x = LEFT + slot * CELL
    y = TOP + host * (HOST_HEIGHT + 16) + 12
    colour = RANK_COLOURS[slot]
    canvas.box((x, y), (CELL - 12, HOST_HEIGHT - 24), tint(colour), colour, line=1.6, round=6)
    middle = x + (CELL - 12) / 2
    canvas.text((middle, y + 22), f"rank {host * SLOTS + slot}", 15, weight="bold")
    canvas.text((middle, y + 52), f"local rank {slot}", NORMAL)
    canvas.text((middle, y + 73), f"cross rank {host}", NORMAL)


def draw_places() -> Canvas:
    """Draw hosts as rows and slots as columns, and bracket what each size counts."""
    canvas = Canvas(640, 376, "Ranks, local ranks and cross ranks on 2 hosts with 4 slots each")
    right = LEFT + SLOTS * CELL
    for host in range(HOSTS):
        y = TOP + host * (HOST_HEIGHT + 16)
        canvas.box((14, y), (right - 14, HOST_HEIGHT), PANEL, round=8)
        canvas.text((28, y + HOST_HEIGHT / 2), f"host {host}", TITLE, ha="left", weight="bold")
        for slot in range(SLOTS):
            draw_slot(canvas, host, slot)
    for slot in range(SLOTS):
        middle = LEFT + slot * CELL + (CELL - 12) / 2
        canvas.text((middle, 30), f"slot {slot}", SMALL, color=QUIET)
    bottom = TOP + HOSTS * HOST_HEIGHT + 16
    canvas.bracket((right + 12, TOP + 4), (right + 12, bottom - 4), 8)
    label = (right + 30, (TOP + bottom) / 2)
    canvas.text(label, "cross size\n= 2", NORMAL, ha="left")
    canvas.bracket((LEFT, bottom + 10), (right - 12, bottom + 10), 8)
    middle = (LEFT + right - 12) / 2
    canvas.text((middle, bottom + 34), "local size = 4 on each host", NORMAL)
    text = "size = 8 processes in all"
    canvas.text((middle, bottom + 58), text, NORMAL, weight="bold", color=INK)
    return canvas
