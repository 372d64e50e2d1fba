"""Draws a machine's cores and the caches that they share, much as hwloc's ``lstopo`` does."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from hvdcourse.machine import NOT_TOLD, Cache, Machine, show_size
from hvdcourse.plots import COLOURS

_IN_A_ROW = 8  # cores
_GAP = 0.12
_MOST_GROUPS = 6
_DETAILED = 32  # with more cores than this, only one of them names its caches


def plot_machine(machine: Machine) -> Figure:
    """Draw each socket as a box of cores, grouped by the largest cache that they share.

    A core that this process may not use is grey. What the kernel does not tell is not drawn.
    """
    groups = core_groups(machine)
    groups, others = groups[:_MOST_GROUPS], groups[_MOST_GROUPS:]
    heights = [_group_height(cores) for _, _, cores in groups]
    width = max((min(len(cores), _IN_A_ROW) for _, _, cores in groups), default=1)
    size = (max(4.0, 1.12 * width + 0.6), max(1.6, 0.72 * sum(heights) + 0.7))
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    top = 0.0
    for (socket, shared, cores), height in zip(groups, heights, strict=True):
        _draw_group(axes, machine, (top, height), socket, shared, cores, width)
        top += height + _GAP
    if others:
        count = sum(len(cores) for _, _, cores in others)
        rest = f"and {len(others)} more groups, {count} cores"
        axes.text(0, top + 0.1, rest, va="center", fontsize=8)
    axes.set(xlim=(-_GAP, width + _GAP), ylim=(top + (0.3 if others else 0), -_GAP))
    axes.axis("off")
    axes.set_title(machine.processor or f"processor: {NOT_TOLD}", fontsize=10)
    return figure


def core_groups(machine: Machine) -> list[tuple[int | None, Cache | None, list[int]]]:
    """Return groups of cores: their socket, the largest cache that they share, and the cores.

    A hardware thread whose core is not told counts as one. Cores without a told cache that several
    share are one group a socket.
    """
    last = max((cache.level for cache in machine.caches), default=0)
    shared_by = {
        number: cache
        for cache in machine.caches
        if cache.level == last and len(machine.users(cache)) > 1
        for number in cache.threads
    }
    groups: dict[tuple[int | None, Cache | None], list[int]] = {}
    for thread in machine.threads:
        core = thread.number if thread.core is None else thread.core
        group = groups.setdefault((thread.socket, shared_by.get(thread.number)), [])
        if core not in group:
            group.append(core)
    return [(socket, cache, cores) for (socket, cache), cores in groups.items()]


def _group_height(cores: list[int]) -> float:
    """Return the height of a group: a line of title, rows of cores, a line for their cache."""
    return 0.45 + -(-len(cores) // _IN_A_ROW) + 0.45


def _draw_group(
    axes: Axes,
    machine: Machine,
    place: tuple[float, float],
    socket: int | None,
    shared: Cache | None,
    cores: list[int],
    width: int,
) -> None:
    """Draw one group of cores and the cache below them."""
    top, height = place
    axes.add_patch(Rectangle((0, top), width, height, facecolor="#F4F4F4", edgecolor="#555555"))
    nodes = sorted({one.numa_node for one in machine.threads if one.number in cores} - {None})
    title = f"socket {NOT_TOLD if socket is None else socket}"
    title += f", NUMA node {', '.join(map(str, nodes)) if nodes else NOT_TOLD}"
    axes.text(0.08, top + 0.24, title, va="center", fontsize=8)
    for number, core in enumerate(cores):
        row, column = divmod(number, _IN_A_ROW)
        named = len(machine.cores) <= _DETAILED or number == 0
        _draw_core(axes, machine, (column, top + 0.45 + row), core, named)
    bar = (_GAP / 2, top + height - 0.4)
    colour = (COLOURS[5], 0.55) if shared else "white"
    axes.add_patch(Rectangle(bar, width - _GAP, 0.32, facecolor=colour, edgecolor="#999999"))
    text = "no cache is told that they share"
    if shared:
        text = f"{shared.name} {show_size(shared.size)}, shared"
    axes.text(width / 2, bar[1] + 0.16, text, ha="center", va="center", fontsize=8)


def _draw_core(
    axes: Axes, machine: Machine, place: tuple[float, float], core: int, named: bool
) -> None:
    """Draw one core, its hardware threads and the caches that are its own."""
    x, y = place
    threads = [one.number for one in machine.threads if core in (one.core, one.number)]
    usable = bool(set(threads) & set(machine.allowed))
    colour = (COLOURS[4], 0.45) if usable else "#D9D9D9"
    box = (x + _GAP / 2, y + _GAP / 2)
    axes.add_patch(
        Rectangle(box, 1 - _GAP, 1 - _GAP, facecolor=colour, edgecolor="#555555", linewidth=0.8)
    )
    label = "thread" if len(threads) == 1 else "threads"
    own = [
        f"{cache.name} {show_size(cache.size)}"
        for cache in machine.caches
        if cache.kind != "Instruction" and set(cache.threads) <= set(threads)
    ]
    lines = [f"{label} {', '.join(map(str, threads))}", *(own if named else [])]
    axes.text(x + 0.5, y + 0.5, "\n".join(lines), ha="center", va="center", fontsize=7)
