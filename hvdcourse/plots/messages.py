"""Drawings of what ranks hold, and of the numbers that move between them."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from hvdcourse.plots.palette import INK, RANK_COLORS, SLATE, VERMILION, WHITE
from hvdcourse.simulate.collectives import Collective, RingState, ring_states

_PALE = 0.35
_ROW, _BOX, _WIDTH = 1.0, 0.46, 0.84


@dataclass(frozen=True)
class Frame:
    """A moment of the ring allreduce.

    Attributes:
        state: what the ranks hold.
        moving: values on their way to the next rank: sender, chunk and value.
        words: what happens.
    """

    state: RingState
    moving: tuple[tuple[int, int, int], ...]
    words: str


def ring_frames(ranks: int = 4) -> list[Frame]:
    """Return the ring allreduce as moments: the start, and for each step its messages and sums."""
    states = ring_states(ranks)
    frames = [Frame(states[0], (), f"start: each rank holds {len(states[0].held)} chunks")]
    for number, (before, after) in enumerate(itertools.pairwise(states), 1):
        count = len(before.held)
        senders = {((rank - 1) % count, chunk) for rank, chunk in after.arrived}
        moving = tuple((rank, c, int(before.held[rank, c])) for rank, c in sorted(senders))
        adds = after.title.startswith("scatter")
        does = "adds it to its own" if adds else "keeps it in place of its own"
        sent = f"Each rank has sent {number} of {2 * count - 2} messages"
        frames.append(
            Frame(before, moving, f"{after.title}: each rank sends one chunk to the next")
        )
        frames.append(Frame(after, (), f"{after.title}: the receiver {does}.\n{sent}"))
    return frames


def draw_ring(frame: Frame) -> tuple[Figure, str]:
    """Draw what each rank holds and what is on its way, and say it in words."""
    held, parts = frame.state.held, frame.state.parts
    count = len(held)
    figure, axes = _page(count, count)
    for rank in range(count):
        for chunk in range(count):
            is_full = bool(parts[rank, chunk] == count)
            has_arrived = not frame.moving and (rank, chunk) in frame.state.arrived
            origin = None if is_full else chunk
            _box(axes, chunk, rank, held[rank, chunk], origin, has_arrived)
    for sender, chunk, value in frame.moving:
        start, end = sender * _ROW + _BOX / 2, (sender + 1) * _ROW - _BOX / 2
        style = {"arrowstyle": "-|>", "color": VERMILION, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (chunk, end), (chunk, start), arrowprops=style)
        if sender == count - 1:  # the ring closes: into rank 0, from above
            axes.annotate("", (chunk, -_BOX / 2), (chunk, -_ROW + _BOX / 2), arrowprops=style)
        label = {"boxstyle": "round,pad=0.2", "facecolor": WHITE, "edgecolor": VERMILION}
        middle = (start + end) / 2
        axes.text(chunk, middle, str(value), ha="center", va="center", fontsize=9, bbox=label)
    axes.set_title(frame.words, fontsize=10, loc="left")
    rows = "; ".join(f"rank {rank}: {', '.join(map(str, row))}" for rank, row in enumerate(held))
    return figure, f"{frame.words}\n{rows}"


def draw_collective(shown: Collective, when: str) -> tuple[Figure, str]:
    """Draw what each rank holds "before" or "after" a collective, and say it in words."""
    rows: Sequence = shown.before if when == "before" else shown.after
    width = max(len(row) for row in (*shown.before, *shown.after))
    figure, axes = _page(len(rows), width)
    for rank, row in enumerate(rows):
        for place, (value, origin) in enumerate(row):
            _box(axes, place, rank, value, origin)
    words = f"{when} {shown.name} ({shown.call})"
    axes.set_title(words, fontsize=10, loc="left")
    held = "; ".join(
        f"rank {rank}: {', '.join(str(value) for value, _ in row)}" for rank, row in enumerate(rows)
    )
    return figure, f"{words}\n{held}"


def _page(ranks: int, width: int) -> tuple[Figure, Axes]:
    """Return a figure with a row for each rank, and room around them for messages."""
    height = 0.66 * (ranks + 1) + 0.4
    figure = Figure(figsize=(1.4 + 0.72 * max(width, 5), height))
    # Room for a title of two lines, however few the ranks.
    axes = figure.add_axes((0.02, 0.02, 0.96, 0.98 - max(0.14, 0.55 / height)))
    axes.set(xlim=(-1.8, max(width, 5) - 0.4), ylim=(ranks * _ROW - 0.2, -0.8))
    axes.set_axis_off()
    for rank in range(ranks):
        axes.text(-0.7, rank * _ROW, f"rank {rank}", ha="right", va="center", color=INK)
    return figure, axes


def _box(
    axes: Axes, column: int, row: int, value: object, origin: int | None, marked: bool = False
) -> None:
    """Draw a value in a box: in its origin's color, or dark where all ranks were added."""
    color = SLATE if origin is None else RANK_COLORS[origin]
    at = (column - _WIDTH / 2, row * _ROW - _BOX / 2)
    alpha = 1.0 if origin is None else _PALE
    axes.add_patch(Rectangle(at, _WIDTH, _BOX, facecolor=color, alpha=alpha, linewidth=0))
    edge, line = (VERMILION, 2.4) if marked else (color, 1.0)
    axes.add_patch(Rectangle(at, _WIDTH, _BOX, fill=False, edgecolor=edge, linewidth=line))
    ink, weight = (WHITE, "bold") if origin is None else (INK, "normal")
    text = axes.text(column, row * _ROW, str(value), color=ink, weight=weight)
    text.set(ha="center", va="center")
