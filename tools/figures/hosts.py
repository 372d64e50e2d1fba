"""The figures of ranks on hosts: local and cross ranks, how they are placed, and how started."""

from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts

from figures.drawing import NORMAL, SMALL, TITLE, Canvas, tint
from hvdcourse.plots.palette import INK, PANEL, QUIET, RANK_COLORS, SLATE, WHITE

# The first figure: hosts as rows, slots as columns.
HOSTS, SLOTS = 2, 4
LEFT, TOP, SLOT_WIDTH, HOST_HEIGHT = 96, 48, 112, 146

# The second figure: one row of hosts for each way to place four ranks.
ROWS = (("even: -H a:2,b:2", "a:2,b:2"), ("uneven: -H a:2,b:1,c:1", "a:2,b:1,c:1"))
ROW_LEFT, ROW_TOP, RANK_WIDTH, ROW_HEIGHT, ROW_GAP, HOST_GAP = 20, 46, 128, 112, 62, 14


def draw_gpu(canvas: Canvas, at: tuple[float, float], number: int) -> None:
    """Draw a GPU, or the core that stands for it, around its middle."""
    corner = (at[0] - 32, at[1] - 11)
    canvas.box(corner, (64, 22), WHITE, SLATE, label=f"GPU {number}", font=SMALL, round=2)


def draw_slot(canvas: Canvas, host: int, slot: int) -> None:
    """Draw one process: its rank, its local rank and its cross rank, and the GPU that it uses."""
    x = LEFT + slot * SLOT_WIDTH
    y = TOP + host * (HOST_HEIGHT + 16) + 12
    size = (SLOT_WIDTH - 12, HOST_HEIGHT - 24)
    color = RANK_COLORS[slot]
    canvas.box((x, y), size, tint(color), color, line=1.6, round=6)
    middle = x + size[0] / 2
    canvas.text((middle, y + 22), f"rank {host * SLOTS + slot}", 15, weight="bold")
    canvas.text((middle, y + 52), f"local rank {slot}", NORMAL)
    canvas.text((middle, y + 73), f"cross rank {host}", NORMAL)
    draw_gpu(canvas, (middle, y + 101), slot)


def draw_places() -> Canvas:
    """Draw hosts as rows and slots as columns, and bracket what each size counts."""
    canvas = Canvas(640, 432, "Ranks, local ranks and cross ranks on 2 hosts with 4 slots each")
    right = LEFT + SLOTS * SLOT_WIDTH
    for host in range(HOSTS):
        y = TOP + host * (HOST_HEIGHT + 16)
        canvas.box((14, y), (right - 14, HOST_HEIGHT), PANEL, round=8)
        canvas.text((28, y + HOST_HEIGHT / 2), f"host {host}", TITLE, ha="left", weight="bold")
        for slot in range(SLOTS):
            draw_slot(canvas, host, slot)
    for slot in range(SLOTS):
        middle = LEFT + slot * SLOT_WIDTH + (SLOT_WIDTH - 12) / 2
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


def draw_row(canvas: Canvas, hosts: str, top: float) -> None:
    """Draw one row of hosts with their slots, as Horovod's launcher assigns the ranks."""
    total = sum(host.slots for host in parse_hosts(hosts))
    x = ROW_LEFT
    for host in parse_hosts(hosts):
        width = host.slots * RANK_WIDTH
        canvas.box((x, top), (width, ROW_HEIGHT), PANEL, round=8)
        canvas.text((x + 12, top + 18), f"host {host.hostname}", NORMAL, ha="left", weight="bold")
        x += width + HOST_GAP
    x, last = ROW_LEFT, None
    for slot in get_host_assignments(parse_hosts(hosts), total):
        x += HOST_GAP if last not in (None, slot.hostname) else 0
        last = slot.hostname
        color = RANK_COLORS[slot.local_rank]
        at, size = (x + 8, top + 30), (RANK_WIDTH - 16, ROW_HEIGHT - 38)
        canvas.box(at, size, tint(color), color, line=1.6, round=6)
        middle = x + RANK_WIDTH / 2
        canvas.text((middle, top + 46), f"rank {slot.rank}", TITLE, weight="bold")
        text = f"local rank {slot.local_rank} of {slot.local_size}"
        canvas.text((middle, top + 68), text, SMALL)
        text = f"cross rank {slot.cross_rank} of {slot.cross_size}"
        canvas.text((middle, top + 87), text, SMALL)
        x += RANK_WIDTH


def draw_placement() -> Canvas:
    """Draw four ranks on even and on uneven hosts."""
    height = ROW_TOP + 2 * ROW_HEIGHT + ROW_GAP + 14
    canvas = Canvas(590, height, "Four ranks on even and on uneven hosts")
    for row, (name, hosts) in enumerate(ROWS):
        top = ROW_TOP + row * (ROW_HEIGHT + ROW_GAP)
        canvas.text((ROW_LEFT, top - 18), name, NORMAL, ha="left", color=QUIET)
        draw_row(canvas, hosts, top)
    return canvas


def draw_started_host(canvas: Canvas, name: str, left: float, top: float) -> None:
    """Draw a host with two slots: its ranks, and the GPU of each local rank."""
    canvas.box((left, top), (292, 150), PANEL, round=8)
    canvas.text((left + 14, top + 20), f"host {name}", NORMAL, ha="left", weight="bold")
    for slot in get_host_assignments(parse_hosts("a:2,b:2"), 4):
        if slot.hostname != name:
            continue
        color = RANK_COLORS[slot.rank]
        x = left + 14 + slot.local_rank * 138
        canvas.box((x, top + 36), (126, 56), tint(color), color, line=1.6, round=6)
        canvas.text((x + 63, top + 53), f"rank {slot.rank}", TITLE, weight="bold")
        canvas.text((x + 63, top + 76), f"local rank {slot.local_rank}", SMALL)
        canvas.arrow((x + 63, top + 94), (x + 63, top + 114), INK, head=9)
        draw_gpu(canvas, (x + 63, top + 127), slot.local_rank)


def draw_launch() -> Canvas:
    """Draw the launcher on host a, the ranks that it starts, and how they then talk."""
    canvas = Canvas(640, 350, "How horovodrun starts four ranks on two hosts")
    lefts, top = (14, 334), 122
    words = "horovodrun -np 4 -H a:2,b:2 python train.py"
    canvas.box((14, 14), (380, 50), SLATE, SLATE, round=6)
    canvas.text((204, 30), words, NORMAL, color=WHITE, weight="bold")
    canvas.text((204, 50), "the launcher: starts, watches and ends the ranks", SMALL, color=WHITE)
    for name, left in zip("ab", lefts, strict=True):
        draw_started_host(canvas, name, left, top)
    canvas.arrow((160, 66), (160, top - 2), INK, line=2)
    canvas.text((170, 92), "starts 2 processes here", SMALL, ha="left")
    canvas.arrow((396, 40), (480, top - 2), INK, line=2, bend=-0.35)
    canvas.text((492, 62), "logs in over SSH,\nstarts 2 there", SMALL, ha="left")
    bottom = top + 160
    middles = [left + 77 + 138 * slot for left in lefts for slot in range(2)]
    canvas.bracket((middles[0], bottom), (middles[-1], bottom), 10)
    for x in middles[1:-1]:
        canvas.line([(x, bottom), (x, bottom + 10)])
    text = "From then on the ranks talk to each other: collectives do not pass the launcher."
    canvas.text((320, bottom + 30), text, NORMAL)
    text = "On a host without GPUs, this course gives each rank its share of the cores."
    canvas.text((320, bottom + 52), text, SMALL, color=QUIET)
    return canvas
