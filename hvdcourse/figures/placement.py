"""The figure of ranks on hosts with 2, 1 and 1 slots: where local and cross ranks come from."""

from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts

from hvdcourse.figures.drawing import (
    NORMAL,
    PANEL,
    QUIET,
    RANK_COLOURS,
    SMALL,
    TITLE,
    Canvas,
    tint,
)

ROWS = (("even: -H a:2,b:2", "a:2,b:2"), ("uneven: -H a:2,b:1,c:1", "a:2,b:1,c:1"))
LEFT, TOP, CELL, HEIGHT, GAP = 20, 46, 128, 112, 62


def draw_hosts(canvas: Canvas, hosts: str, top: float) -> None:
    """Draw one row of hosts with their slots, as Horovod's launcher assigns the ranks."""
    total = sum(host.slots for host in parse_hosts(hosts))
    x = LEFT
    for host in parse_hosts(hosts):
        width = host.slots * CELL
        canvas.box((x, top), (width, HEIGHT), PANEL, round=8)
        canvas.text((x + 12, top + 18), f"host {host.hostname}", NORMAL, ha="left", weight="bold")
        x += width + 14
    x, last = LEFT, None
    for slot in get_host_assignments(parse_hosts(hosts), total):
        x += 14 if last not in (None, slot.hostname) else 0
        last = slot.hostname
        colour = RANK_COLOURS[slot.local_rank]
        place = (x + 8, top + 30)
        canvas.box(place, (CELL - 16, HEIGHT - 38), tint(colour), colour, line=1.6, round=6)
        middle = x + CELL / 2
        canvas.text((middle, top + 46), f"rank {slot.rank}", TITLE, weight="bold")
        text = f"local rank {slot.local_rank} of {slot.local_size}"
        canvas.text((middle, top + 68), text, SMALL)
        text = f"cross rank {slot.cross_rank} of {slot.cross_size}"
        canvas.text((middle, top + 87), text, SMALL)
        x += CELL


def draw_placement() -> Canvas:
    """Draw four ranks on even and on uneven hosts."""
    canvas = Canvas(590, TOP + 2 * HEIGHT + GAP + 14, "Four ranks on even and on uneven hosts")
    for row, (name, hosts) in enumerate(ROWS):
        top = TOP + row * (HEIGHT + GAP)
        canvas.text((LEFT, top - 18), name, NORMAL, ha="left", color=QUIET)
        draw_hosts(canvas, hosts, top)
    return canvas
