"""Plots of runs, in one style, with colours that colour-blind readers can tell apart."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from hvdcourse.result import RunResult

# Okabe and Ito's palette, without its black and yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")


def plot_training(runs: Mapping[str, RunResult]) -> Figure:
    """Draw test accuracy by epoch, and throughput after the first epoch, for runs by their name.

    The first epoch is left out of the throughput: in it TensorFlow also builds its graph.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for colour, (name, result) in zip(COLOURS, runs.items(), strict=False):
        history = result.history
        left.plot(history["epoch"], history["val_accuracy"], "o-", color=colour, label=name)
        speeds = history["images_per_second"][1:]
        mean = sum(speeds) / len(speeds)
        spread = [[mean - min(speeds)], [max(speeds) - mean]]
        right.bar(name, mean, yerr=spread, color=colour, capsize=6, width=0.6)
    left.set(xlabel="epoch", ylabel="test accuracy", ylim=(0, 1.02))
    left.xaxis.get_major_locator().set_params(integer=True)
    left.legend(frameon=False, loc="lower right")
    right.set(ylabel="images per second, all ranks", title="mean, least and most of an epoch")
    right.title.set_fontsize(9)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
