"""Draws which way data takes between the GPUs of a machine: as a picture, and as a table."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Rectangle

from hvdcourse.plots import COLOURS
from hvdcourse.topology import MEANINGS, Topology

LINK_COLOURS = dict(
    zip(
        MEANINGS,
        (COLOURS[0], COLOURS[4], COLOURS[2], COLOURS[5], COLOURS[3], COLOURS[1]),
        strict=True,
    )
)
_GPU_RADIUS = 0.15
_NUMA_TINTS = (
    "#DCE9F5",
    "#FBE3D0",
    "#D6EFE4",
    "#F6E1EE",
    "#E4E4E4",
    "#FFF3C4",
    "#D9F0FB",
    "#EFE6DA",
)
Point = tuple[float, float]


def plot_topology(topologies: dict[str, Topology]) -> Figure:
    """Draw machines, by their name, side by side: GPUs, NVLinks, and the adapters near them."""
    size = (4.8 * len(topologies), 5.2)
    figure, row = plt.subplots(
        1, len(topologies), figsize=size, squeeze=False, layout="constrained"
    )
    for axes, (name, topology) in zip(row[0], topologies.items(), strict=True):
        draw_topology(axes, topology)
        axes.set_title(name)
    return figure


def plot_matrix(topologies: dict[str, Topology]) -> Figure:
    """Draw the tables of machines, by their name, side by side, coloured by the kind of path."""
    sizes = [len(topology.devices) for topology in topologies.values()]
    figure, row = plt.subplots(
        1,
        len(topologies),
        figsize=(4.8 * len(topologies), 6.4),
        squeeze=False,
        layout="constrained",
    )
    for axes, (name, topology), size in zip(row[0], topologies.items(), sizes, strict=True):
        draw_matrix(axes, topology, fontsize=min(9, 92 / size))
        axes.set_title(name)
    kinds = {link.kind for topology in topologies.values() for link in topology.links.values()}
    handles = [
        Rectangle((0, 0), 1, 1, color=(LINK_COLOURS[kind], 1 if kind == "NV#" else 0.4))
        for kind in MEANINGS
        if kind in kinds
    ]
    names = [f"{kind}: {MEANINGS[kind]}" for kind in MEANINGS if kind in kinds]
    figure.legend(handles, names, loc="outside lower center", frameon=False, fontsize=8)
    return figure


def places(topology: Topology) -> dict[str, Point]:
    """Return a place for each GPU: on a circle, the first half down its left, the others its right.

    GPUs of one NUMA node are neighbours, so that paths within a node are short.
    """
    nodes = numa_nodes(topology)
    gpus = sorted(topology.gpus, key=lambda gpu: list(nodes).index(_node(topology, gpu)))
    if len(gpus) == 1:
        return {gpus[0]: (0.0, 0.0)}
    half = (len(gpus) + 1) // 2
    found = {}
    for number, gpu in enumerate(gpus):
        side, step, count = (
            (-1, number, half) if number < half else (1, number - half, len(gpus) - half)
        )
        angle = np.pi * (step + 0.5) / count
        found[gpu] = (side * float(np.sin(angle)), float(np.cos(angle)))
    return found


def _node(topology: Topology, gpu: str) -> str:
    """Return what the table tells of the NUMA node: its number, or else the processors near by."""
    return topology.numa.get(gpu) or topology.cpus.get(gpu) or ""


def numa_nodes(topology: Topology) -> dict[str, list[str]]:
    """Return the GPUs of each NUMA node, in the table's order."""
    nodes: dict[str, list[str]] = {}
    for gpu in topology.gpus:
        nodes.setdefault(_node(topology, gpu), []).append(gpu)
    return nodes


def draw_topology(axes: Axes, topology: Topology) -> None:
    """Draw GPUs, an edge for each pair, and each network adapter beside the GPUs near it."""
    at = places(topology)
    if topology.switched:
        _draw_switch(axes, topology, at)
    else:
        _draw_edges(axes, topology, at)
    _draw_adapters(axes, topology, at)
    tints = dict(zip(numa_nodes(topology), _NUMA_TINTS * 8, strict=False))
    for gpu, (x, y) in at.items():
        tint = tints[_node(topology, gpu)]
        axes.add_patch(Circle((x, y), _GPU_RADIUS, facecolor=tint, edgecolor="#333333", zorder=3))
        axes.text(x, y, gpu.replace("GPU", "GPU\n"), ha="center", va="center", fontsize=8, zorder=4)
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.4, 1.25), aspect="equal")
    axes.axis("off")
    handles = _legend(topology, tints)
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.02),
        ncols=2,
        fontsize=8,
        frameon=False,
    )


def _edge_style(topology: Topology, nvlinks: int) -> dict[str, Any]:
    """Return how an edge looks: NVLinks as wide as they are many; beside them the others pale."""
    if nvlinks:
        return {"linewidth": (0.6 if topology.switched else 1.8) * nvlinks}
    if any(topology.nvlinks(gpu) for gpu in topology.gpus):
        return {"linewidth": 0.9, "linestyle": (0, (4, 3)), "alpha": 0.6}
    return {"linewidth": 2}


def _draw_edges(axes: Axes, topology: Topology, at: dict[str, Point]) -> None:
    """Draw an edge for each pair, the best on top."""
    for one, other, link in reversed(topology.pairs()):
        (x1, y1), (x2, y2) = at[one], at[other]
        style = _edge_style(topology, link.nvlinks)
        axes.plot([x1, x2], [y1, y2], color=LINK_COLOURS[link.kind], zorder=2, **style)


def _draw_switch(axes: Axes, topology: Topology, at: dict[str, Point]) -> None:
    """Draw each GPU's NVLinks to the switches in the middle."""
    count = topology.best_pair()[2].nvlinks
    for x, y in at.values():
        style = _edge_style(topology, count)
        axes.plot([0, x], [0, y], color=LINK_COLOURS["NV#"], zorder=1, **style)
    axes.add_patch(
        Circle((0, 0), 0.3, facecolor="white", edgecolor=LINK_COLOURS["NV#"], linewidth=2, zorder=3)
    )
    axes.text(0, 0, "NVSwitches", ha="center", va="center", fontsize=8, zorder=4)


def _draw_adapters(axes: Axes, topology: Topology, at: dict[str, Point]) -> None:
    """Draw an adapter outside of the circle, with lines to the GPUs that are near it."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for nic in topology.nics:
        near = tuple(topology.near(nic))
        far = topology.link(nic, near[0]).kind == "SYS"
        groups.setdefault(() if far else near, []).append(nic)
    for near, nics in groups.items():
        if not near:
            note = f"{', '.join(nics)}: SYS to every GPU"
            axes.text(0, -1.3, note, ha="center", va="center", fontsize=7, color="#555555")
            continue
        centre = np.mean([at[gpu] for gpu in near], axis=0)
        x, y = centre / max(np.hypot(*centre), 0.01) * 1.55
        kind = topology.link(nics[0], near[0]).kind
        for gpu in near:
            axes.plot(
                [x, at[gpu][0]], [y, at[gpu][1]], color=LINK_COLOURS[kind], linewidth=1.2, zorder=1
            )
        box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": "#888888"}
        axes.text(x, y, "\n".join(nics), ha="center", va="center", fontsize=7, bbox=box, zorder=4)


def _legend(topology: Topology, tints: dict[str, str]) -> list[Line2D]:
    """Return what the picture's lines and tints stand for."""
    handles = []
    for link in topology.by_link():
        label = f"{link} to the switches" if topology.switched else str(link)
        style = _edge_style(topology, link.nvlinks)
        handles.append(Line2D([], [], color=LINK_COLOURS[link.kind], label=label, **style))
    kinds = {topology.link(nic, topology.near(nic)[0]).kind for nic in topology.nics} - {"SYS"}
    handles += [
        Line2D([], [], color=LINK_COLOURS[kind], linewidth=1.2, label=f"{kind} to an adapter")
        for kind in MEANINGS
        if kind in kinds
    ]
    for node, tint in tints.items():
        if node:
            name = f"NUMA node {node}" if node in topology.numa.values() else f"near CPUs {node}"
            handles.append(
                Line2D(
                    [],
                    [],
                    marker="o",
                    linestyle="",
                    markersize=8,
                    markerfacecolor=tint,
                    markeredgecolor="#333333",
                    label=name,
                )
            )
    return handles


def draw_matrix(axes: Axes, topology: Topology, fontsize: float = 8) -> None:
    """Draw the table itself, each cell in the colour of its kind of path."""
    devices = topology.devices
    most = max((link.nvlinks for link in topology.links.values()), default=0)
    for row, one in enumerate(devices):
        for column, other in enumerate(devices):
            if one == other:
                continue
            link = topology.link(one, other)
            # More NVLinks are darker; other paths are paler than any of them.
            colour = (
                LINK_COLOURS[link.kind],
                0.6 + 0.4 * link.nvlinks / most if link.nvlinks else 0.4,
            )
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colour, edgecolor="white"))
            ink = "white" if link.nvlinks else "black"
            axes.text(
                column + 0.5,
                row + 0.5,
                str(link),
                ha="center",
                va="center",
                fontsize=fontsize * 0.8,
                color=ink,
            )
    ticks = np.arange(len(devices)) + 0.5
    axes.set_xticks(ticks, devices, rotation=90, fontsize=fontsize)
    axes.set_yticks(ticks, devices, fontsize=fontsize)
    axes.set(xlim=(0, len(devices)), ylim=(len(devices), 0), aspect="equal")
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
