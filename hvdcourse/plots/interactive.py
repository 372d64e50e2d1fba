"""What to play with in a lesson: a figure, and controls that draw it anew in a running notebook.

A static page shows the figure as it was at first, and says in a line of text what the controls are.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display
from matplotlib.figure import Figure

from hvdcourse.errors import positive
from hvdcourse.plots.messages import draw_collective, draw_ring, ring_frames
from hvdcourse.plots.palette import BLUE, DARK_GRAY, GRAY, LIGHT_GRAY, ORANGE, VERMILION
from hvdcourse.plots.scaling import plot_efficiency
from hvdcourse.plots.subplots import subplots
from hvdcourse.simulate.collectives import COLLECTIVES, collective
from hvdcourse.simulate.scaling import steps_to_accuracy, what_if

STEPS_PER_EPOCH = 50
RATES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
# Where the schedule's steps down are, as parts of all epochs, and what they leave of the rate.
FALLS = ((0.5, 0.1), (0.75, 0.01))
BATCHES = 2.0 ** np.arange(17)
# Images of all GPUs together with strong scaling: 16,384 GPUs still have 4 each.
STRONG_BATCH = 2**16
_DPI = 100


def play_ring() -> None:
    """Show the ring allreduce message by message; a slider, or the play button, moves it on."""
    frames = ring_frames()
    last = len(frames) - 1
    # The still of a static page shows messages on their way.
    moment = ipywidgets.IntSlider(1, 0, last, description="moment", continuous_update=False)
    button = ipywidgets.Play(value=1, min=0, max=last, interval=1500)
    ipywidgets.jslink((button, "value"), (moment, "value"))
    _show(lambda moment: draw_ring(frames[moment]), {"moment": moment}, button)


def play_collectives() -> None:
    """Show what ranks hold before and after a collective that is chosen."""
    shown = {name: collective(name) for name in COLLECTIVES}
    name = ipywidgets.Dropdown(options=COLLECTIVES, description="collective")
    when = ipywidgets.ToggleButtons(options=["before", "after"], value="after")
    _show(
        lambda collective, when: draw_collective(shown[collective], when),
        {"collective": name, "when": when},
    )


def play_schedule() -> None:
    """Show the learning rate of every step; sliders set one rank's rate, ranks and epochs."""
    controls = {
        "rate": ipywidgets.SelectionSlider(options=RATES, value=0.05, description="rate η"),
        "ranks": ipywidgets.IntSlider(8, 1, 64, description="ranks"),
        "warmup_epochs": ipywidgets.IntSlider(5, 0, 20, description="warmup"),
        "epochs": ipywidgets.IntSlider(30, 4, 90, description="epochs"),
    }
    _show(draw_schedule, controls)


def play_batch_size(critical_batch: float = 1024) -> None:
    """Show what steps and images a fixed loss costs against the batch size, and one batch on it.

    Args:
        critical_batch: B_crit at first, in images, such as one that was measured; a slider sets it.

    Raises:
        BadInput: it is not a number above 0.
    """
    critical_batch = positive(critical_batch, "critical_batch")
    powers = {"base": 2, "min": 0, "max": 16, "readout_format": ",.0f"}
    controls = {
        "batch": ipywidgets.FloatLogSlider(256, step=1, description="batch B", **powers),
        "per_rank": ipywidgets.FloatLogSlider(32, step=1, description="per rank", **powers),
        "critical_batch": ipywidgets.FloatLogSlider(
            critical_batch, step=0.25, description="B_crit", **powers
        ),
    }
    _show(draw_batch_size, controls)


def play_scaling() -> None:
    """Show the scaling efficiency up to a number of GPUs, and that of the 512-GPU chart."""
    controls = {
        "model": ipywidgets.Dropdown(
            options=["vgg16", "resnet50", "resnet101", "inception_v3"], description="model"
        ),
        "gpus": ipywidgets.SelectionSlider(
            options=[(f"{2**n:,}", 2**n) for n in range(2, 15)], value=512, description="GPUs"
        ),
        "link": ipywidgets.Dropdown(
            options=["10gbit", "25gbit", "100gbit", "400gbit"], value="100gbit", description="link"
        ),
        "inside": ipywidgets.Dropdown(options=["pcie", "nvlink", "nvlink4"], description="inside"),
        "fp16": ipywidgets.Checkbox(description="fp16 on the wire"),
        "fusion_mb": ipywidgets.Dropdown(options=[128, 64, 16, 1, 0], description="fusion MB"),
        "faster": ipywidgets.IntSlider(1, 1, 16, description="GPUs faster"),
        "delay_ms": ipywidgets.IntSlider(0, 0, 50, description="delay (ms)"),
        "scaling": ipywidgets.Dropdown(options=["weak", "strong"], description="scaling"),
    }
    _show(draw_scaling, controls)


def schedule(rate: float, ranks: int, warmup_epochs: int, epochs: int) -> np.ndarray:
    """Return the learning rate of each step of a training with linear scaling and warmup.

    In the warmup the rate rises, in equal parts, from one rank's rate to ``ranks`` times that
    (Goyal et al., arXiv:1706.02677, section 2.2). It falls to a tenth after half of the epochs,
    and to a hundredth after three quarters.
    """
    steps = np.arange(epochs * STEPS_PER_EPOCH)
    warmup_steps = warmup_epochs * STEPS_PER_EPOCH
    rates = np.full(len(steps), rate * ranks)
    for part, factor in FALLS:
        rates[steps // STEPS_PER_EPOCH >= part * epochs] = rate * ranks * factor
    ramp = rate * (1 + (ranks - 1) * steps / max(warmup_steps, 1))
    return np.where(steps < warmup_steps, ramp, rates)


def draw_schedule(rate: float, ranks: int, warmup_epochs: int, epochs: int) -> tuple[Figure, str]:
    """Draw the rate of every step, and say it in words; a warmup ends with the training."""
    warmup_epochs = min(warmup_epochs, epochs)
    rates = schedule(rate, ranks, warmup_epochs, epochs)
    figure, axes = subplots(figsize=(7, 3.2))
    axes.axvspan(
        0, warmup_epochs * STEPS_PER_EPOCH, color=ORANGE, alpha=0.2, linewidth=0, label="warmup"
    )
    axes.axhline(rate, color=GRAY, linestyle="--", linewidth=1, label="one rank's rate")
    axes.plot(rates, color=BLUE, label=f"on {ranks} ranks")
    axes.set(
        xlabel="step", ylabel="learning rate", xlim=(0, len(rates)), ylim=(0, 1.1 * rate * ranks)
    )
    axes.legend(frameon=False, loc="upper right")
    words = f"{len(rates):,} steps; the rate rises from {rates[0]:.3g} to {rates.max():.3g}"
    if warmup_epochs and ranks > 1:
        words += f", at the first step by {100 * (rates[1] / rates[0] - 1):.1f} %"
    if warmup_epochs > FALLS[0][0] * epochs:
        words += ". The warmup ends after the first fall: shorten it."
    axes.set_title(words, fontsize=10, loc="left")
    return figure, words


def batch_size_costs(batch: float | np.ndarray, critical_batch: float) -> tuple[Any, Any]:
    """Return the steps / S_min and the images / E_min of a training to a fixed loss.

    S = S_min (1 + B_crit / B), and E = S B = E_min (1 + B / B_crit) with E_min = S_min B_crit
    (McCandlish et al., arXiv:1812.06162, section 2.3).
    """
    steps = steps_to_accuracy(batch, critical_batch)
    return steps, steps * batch / critical_batch


def draw_batch_size(batch: float, per_rank: float, critical_batch: float) -> tuple[Figure, str]:
    """Draw steps and images against the batch size, mark one batch, and say its cost in words."""
    ranks = max(1, round(batch / per_rank))
    labels = (
        f"steps / S_min: the time, with a rank for\nevery {per_rank:,.0f} images and free messages",
        "images / E_min: the time on a single rank,\nand the rank-hours on any number",
    )
    curves = batch_size_costs(BATCHES, critical_batch)
    points = batch_size_costs(batch, critical_batch)
    figure, panels = subplots(1, 2, figsize=(8, 3.6), sharey=True)
    for axes, curve, point, color, label in zip(
        panels, curves, points, (BLUE, VERMILION), labels, strict=True
    ):
        axes.loglog(BATCHES, curve, color=color)
        axes.plot([batch], [point], "o", color=color)
        axes.axvline(critical_batch, color=GRAY, linestyle="--", linewidth=1)
        axes.text(
            critical_batch, 0.94, " B_crit", color=DARK_GRAY, transform=axes.get_xaxis_transform()
        )
        axes.axhline(1, color=LIGHT_GRAY, zorder=0)
        axes.set(xlabel="global batch size B", ylim=(0.7, 2e5))
        axes.set_title(label, fontsize=10)
    words = (
        f"B = {batch:,.0f} on {ranks:,} rank{'s' * (ranks > 1)}: "
        f"{points[0]:.2f} times the fewest steps, {points[1]:.2f} times the fewest images"
    )
    figure.suptitle(words, fontsize=10)
    return figure, words


def draw_scaling(model: str, gpus: int, **settings: Any) -> tuple[Figure, str]:
    """Draw the efficiency of a network on chosen machines, and on those of the 512-GPU chart."""
    if settings["scaling"] == "strong":
        settings["batch"] = STRONG_BATCH
    table = what_if(model, gpus, **settings)
    tables = {"25 Gbit/s, PCIe, weak": what_if(model, gpus), "yours": table}
    figure = plot_efficiency(tables)
    words = f"{model} on {gpus:,} GPUs, {settings['link']}: {table['efficiency'][-1]:.0%}"
    figure.axes[0].set_title(words, fontsize=10, loc="left")
    return figure, words


def _bundle(figure: Figure, words: str) -> dict[str, str]:
    """Return a figure as a notebook keeps it: the picture, and words where none can be shown."""
    file = BytesIO()
    figure.savefig(file, format="png", dpi=_DPI)
    plt.close(figure)
    return {"image/png": b64encode(file.getvalue()).decode(), "text/plain": words}


def _show(
    draw: Callable[..., tuple[Figure, str]],
    controls: Mapping[str, ipywidgets.DOMWidget],
    *others: ipywidgets.DOMWidget,
) -> None:
    """Display the controls, and below them the figure, which is drawn anew when one changes."""
    box = ipywidgets.HBox([*others, *controls.values()], layout={"flex_flow": "row wrap"})
    names = ", ".join(control.description or name for name, control in controls.items())
    text = f"(Run this cell to change the figure with controls: {names}.)"
    display({**box._repr_mimebundle_(), "text/plain": text}, raw=True)

    def drawn() -> dict[str, str]:
        values = {name: control.value for name, control in controls.items()}
        return _bundle(*draw(**values))

    handle = display(drawn(), raw=True, display_id=True)
    for control in controls.values():
        control.observe(lambda _: handle.update(drawn(), raw=True), names="value")
