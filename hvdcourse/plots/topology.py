"""Draws which way data takes between the GPUs of a machine: as a picture, and as a table."""

from collections.abc import Mapping
from itertools import cycle
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from hvdcourse.machine.topology import MEANINGS, Link, Topology
from hvdcourse.plots import palette

LINK_COLORS = {
    "NV#": palette.BLUE,
    "PIX": palette.SKY_BLUE,
    "PXB": palette.GREEN,
    "PHB": palette.ORANGE,
    "NODE": palette.PURPLE,
    "SYS": palette.VERMILION,
}
CENTERED: dict[str, Any] = {"ha": "center", "va": "center"}
Point = tuple[float, float]


def plot_topology(topologies: Mapping[str, Topology]) -> Figure:
    """Draw machines, by their name, side by side: GPUs, their links, and the adapters near them."""
    count = len(topologies)
    figure = plt.figure(figsize=(4.8 * count, 5.2), layout="constrained")
    for number, (name, topology) in enumerate(topologies.items(), start=1):
        axes = figure.add_subplot(1, count, number, title=name, aspect="equal")
        draw_topology(axes, topology)
    return figure


def plot_matrix(topologies: Mapping[str, Topology]) -> Figure:
    """Draw the tables of machines, by their name, one below the other, colored by kind of path.

    A table has a row for each GPU; what lies between two adapters is left out.
    """
    most = max(len(topology.devices) for topology in topologies.values())
    rows = [len(topology.gpus) + 2 for topology in topologies.values()]  # 2 for its names
    figure = plt.figure(figsize=(0.46 * most + 0.8, 0.46 * sum(rows) + 1.4), layout="constrained")
    panels = figure.subplots(len(rows), 1, squeeze=False, height_ratios=rows)[:, 0]
    for axes, (name, topology) in zip(panels, topologies.items(), strict=True):
        draw_matrix(axes, topology, most)
        axes.set_title(name)
    kinds = {link.kind for topology in topologies.values() for link in topology.links.values()}
    handles = [
        Patch(color=(LINK_COLORS[kind], 1 if kind == "NV#" else 0.4), label=f"{kind}: {meaning}")
        for kind, meaning in MEANINGS.items()
        if kind in kinds
    ]
    figure.legend(handles=handles, loc="outside lower center", frameon=False, fontsize=8)
    return figure


def draw_topology(axes: Axes, topology: Topology) -> None:
    """Draw GPUs in a circle, their links, and the network adapters around them."""
    at = positions(topology)
    draw_links(axes, topology, at)
    draw_adapters(axes, topology, at)
    draw_gpus(axes, topology, at)
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.4, 1.25))
    axes.axis("off")
    handles, labels = axes.get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    axes.legend(
        named.values(), named, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=2,
        markerscale=0.3, fontsize=8, frameon=False,
    )  # fmt: skip


def positions(topology: Topology) -> dict[str, Point]:
    """Return where each GPU stands on a circle: the first half at its left, the rest at its right.

    GPUs of one NUMA node are neighbors, so that paths within a node are short.
    """
    order = list(topology.places.values())
    gpus = sorted(topology.gpus, key=lambda gpu: order.index(topology.places[gpu]))
    half = (len(gpus) + 1) // 2
    points = {}
    for side, group in ((-1, gpus[:half]), (1, gpus[half:])):
        for number, gpu in enumerate(group):
            angle = np.pi * (number + 0.5) / len(group)
            points[gpu] = (side * float(np.sin(angle)), float(np.cos(angle)))
    return points


def draw_links(axes: Axes, topology: Topology, at: Mapping[str, Point]) -> None:
    """Draw a line for each pair of GPUs, or from each GPU to the switches between them."""
    for number, (link, pairs) in enumerate(topology.by_link().items()):
        ends, label = [(at[first], at[second]) for first, second in pairs], str(link)
        if topology.switched and link.nvlinks:
            ends, label = [((0, 0), point) for point in at.values()], f"{link} to the switches"
            style = {"boxstyle": "circle", "facecolor": "white", "edgecolor": LINK_COLORS["NV#"]}
            axes.text(0, 0, "NVSwitches", **CENTERED, fontsize=8, bbox=style)
        lines = LineCollection(
            ends, label=label, color=LINK_COLORS[link.kind],
            linewidth=min(1.8 * link.nvlinks, 7.2) or 1,
            linestyle="solid" if link.nvlinks else "dashed", alpha=1 if link.nvlinks else 0.6,
            zorder=2 - number / 100,  # the best on top
        )  # fmt: skip
        axes.add_collection(lines)


def draw_adapters(axes: Axes, topology: Topology, at: Mapping[str, Point]) -> None:
    """Draw the network adapters outside of the circle, with lines to the GPUs near them."""
    groups: dict[tuple[Link, tuple[str, ...]], list[str]] = {}
    for adapter in topology.adapters:
        links = {gpu: topology.links[adapter, gpu] for gpu in topology.gpus}
        best = min(links.values(), key=lambda link: link.distance)
        near = tuple(gpu for gpu, link in links.items() if link == best)
        groups.setdefault((best, near), []).append(adapter)
    style = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": palette.QUIET}
    for (link, gpus), adapters in groups.items():
        if link.kind == "SYS":
            text = f"{', '.join(adapters)}: SYS to every GPU"
            axes.text(0, -1.3, text, **CENTERED, fontsize=7)
            continue
        center = np.mean([at[gpu] for gpu in gpus], axis=0)
        distance = np.hypot(*center)
        x, y = center / distance * 1.55 if distance > 0.01 else (0, 0.6)
        lines = LineCollection(
            [((x, y), at[gpu]) for gpu in gpus], label=f"{link} to an adapter",
            color=LINK_COLORS[link.kind], linewidth=1.2, zorder=1,
        )  # fmt: skip
        axes.add_collection(lines)
        axes.text(x, y, "\n".join(adapters), **CENTERED, fontsize=7, bbox=style)


def draw_gpus(axes: Axes, topology: Topology, at: Mapping[str, Point]) -> None:
    """Draw the GPUs, those of each NUMA node in a tint of their own."""
    tints = dict(
        zip(dict.fromkeys(topology.places[gpu] for gpu in at), cycle(palette.TINTS), strict=False)
    )
    for gpu, (x, y) in at.items():
        place = topology.places[gpu]
        axes.scatter(x, y, s=800, color=tints[place], edgecolor=palette.INK, label=place, zorder=3)
        number = gpu.removeprefix("GPU")
        axes.text(x, y, f"GPU\n{number}", **CENTERED, fontsize=8, zorder=4)


def draw_matrix(axes: Axes, topology: Topology, columns: int) -> None:
    """Draw the table itself, as wide as so many columns, each cell in the color of its path."""
    devices, gpus = topology.devices, topology.gpus
    most = max((link.nvlinks for link in topology.links.values()), default=0)
    for (device, other), link in topology.links.items():
        if device not in gpus:
            continue
        row, column = gpus.index(device), devices.index(other)
        # More NVLinks are darker; other paths are paler than any of them.
        strength = 0.6 + 0.4 * link.nvlinks / most if link.nvlinks else 0.4
        color = (LINK_COLORS[link.kind], strength)
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=color, edgecolor="white"))
        axes.text(
            column + 0.5, row + 0.5, str(link), **CENTERED,
            fontsize=9, color="white" if link.nvlinks else "black",
        )  # fmt: skip
    axes.set_xticks(np.arange(len(devices)) + 0.5, devices, rotation=90, fontsize=9)
    axes.set_yticks(np.arange(len(gpus)) + 0.5, gpus, fontsize=9)
    axes.set(xlim=(0, columns), ylim=(len(gpus), 0), aspect="equal", anchor="W")
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
