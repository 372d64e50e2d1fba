"""The axes that plots are drawn into, all in one look."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure


def subplots(*shape: int, **options: Any) -> tuple[Figure, Any]:
    """Do what ``plt.subplots`` does, with room for all texts and no lines at the top and right."""
    figure, axes = plt.subplots(*shape, layout="constrained", **options)
    for each in figure.axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes
