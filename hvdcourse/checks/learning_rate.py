"""What the learning rate of distributed training must do: grow with the ranks, and warm up."""

from collections.abc import Sequence

import numpy as np

from hvdcourse.checks.training import rates
from hvdcourse.evidence import ObservedRun, demand

NEARLY_ALL = 1e-3


def by_epoch(run: ObservedRun) -> list[np.ndarray]:
    """Return each rank's learning rates as an array of shape (epochs, steps)."""
    epochs = run.arguments["epochs"]
    found = [rates(rank) for rank in run.ranks]
    met = [len(mine) > 0 and len(mine) % epochs == 0 for mine in found]
    seen = [f"{len(mine)} updates in {epochs} epochs" for mine in found]
    demand("every epoch has the same number of updates", met, seen)
    return [mine.reshape(epochs, -1) for mine in found]


def is_highest(found: Sequence[float], wanted: float) -> bool:
    """Whether the highest of these rates is the wanted one."""
    return abs(max(found) / wanted - 1) < NEARLY_ALL


def check_scaled(run: ObservedRun, *arguments: str) -> None:
    """The highest rate is one of these arguments, times the number of ranks."""
    singles = [run.arguments[name] for name in arguments]
    found = [rates(rank) for rank in run.ranks]
    demand(
        "the highest learning rate is "
        + ", or ".join(f"{one} x {run.np} = {one * run.np:g}" for one in singles),
        [any(is_highest(mine, one * run.np) for one in singles) for mine in found],
        [f"the highest is {mine.max():g}" for mine in found],
    )


def check_warmup(run: ObservedRun, factors: Sequence[float]) -> None:
    """The rate rises during the warmup; then it is the highest times the schedule's factors.

    ``factors`` has one number for each epoch, those of the warmup included.
    """
    warm, found = run.arguments["warmup_epochs"], by_epoch(run)
    warmups = [mine[:warm].ravel() for mine in found]
    highest = [mine.max() for mine in found]
    demand(
        f"in the first {'epoch' if warm == 1 else f'{warm} epochs'} the rate rises with every "
        f"step, from {highest[0] / run.np:.4g}, that of a single process, to {highest[0]:.4g}"
        if run.np > 1
        else "on one rank nothing is warmed up: the rate is the highest from the first step on",
        [rises(mine, top / run.np, top) for mine, top in zip(warmups, highest, strict=True)],
        [f"the rates are {mine[0]:.4g}, {mine[1]:.4g}, … {mine[-1]:.4g}" for mine in warmups],
    )
    rests = [mine[warm:] for mine in found]
    wanted = [top * np.array(factors)[warm:, None] for top in highest]
    demand(
        "after the warmup the schedule alone sets the rate: "
        + ", then ".join(f"{one[0]:.4g}" for one in wanted[0]),
        [np.allclose(m, w, rtol=NEARLY_ALL) for m, w in zip(rests, wanted, strict=True)],
        [", then ".join(f"{row[0]:.4g} to {row[-1]:.4g}" for row in mine) for mine in rests],
    )


def rises(found: np.ndarray, begin: float, end: float) -> bool:
    """Whether the rates lie, but for one step's worth, on the line from begin to end."""
    rise = (end - begin) / len(found)
    line = begin + rise * np.arange(1, len(found) + 1)
    return bool(np.all(np.abs(found - line) <= 1.01 * rise + NEARLY_ALL * end))
