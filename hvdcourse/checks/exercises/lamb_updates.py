"""The updates of ``lamb.py``'s layers, as each rank kept them, and how numbers compare."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import ObservedRank, ObservedRun, demand_of_run, percent

# Of float32 numbers, among them 1 − β₂ᵗ; wrong formulas are off by a hundredth and more.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class LayerUpdate:
    """One update of one layer: what came in, what the script made of it, and what came out.

    ``made`` has the script's m, v, r and u, and ``before`` its m and v of the update before.
    """

    name: str
    t: int
    decay: float
    x: np.ndarray
    g: np.ndarray
    before: dict[str, np.ndarray]
    made: dict[str, np.ndarray]
    ratio: float
    excluded: bool
    x_after: np.ndarray

    def __str__(self) -> str:
        return f"in update {self.t} of {self.name!r} (weight decay {self.decay})"


def kept(rank: ObservedRank, name: str, count: int) -> list[Any]:
    """Return what the rank kept under a name. Raises Unmet unless that is so many values."""
    values = rank.all_reported(name)
    demand_of_run(
        f"every rank keeps {count} values of {name!r} in its two trainings",
        len(values) == count,
        f"rank {rank.rank}: kept {len(values)}",
    )
    return values


def updates_of(run: ObservedRun, rank: ObservedRank) -> Iterator[LayerUpdate]:
    """Yield all updates of a rank's layers, up to where a weight is no number any more."""
    count = run.arguments["updates"]
    gradients = [kept(each, "gradients", 2 * count) for each in run.ranks]
    weights = kept(rank, "weights", 2 * (count + 1))
    names = list(weights[0])
    layers = kept(rank, "layer", 2 * count * len(names))
    for place in range(2 * count):
        training, update = divmod(place, count)
        first = place * len(names)
        made = {layer["name"]: layer for layer in layers[first : first + len(names)]}
        if update == 0:
            zeros = {name: np.zeros_like(array(weights[0][name])) for name in names}
            before = {name: {"m": zeros[name], "v": zeros[name]} for name in names}
        for name in names:
            values = {key: array(made[name][key]) for key in ("m", "v", "r", "u")}
            of_layer = LayerUpdate(
                name=name.removesuffix(":0"),
                t=update + 1,
                decay=training * run.arguments["weight_decay"],
                x=array(weights[place + training][name]),
                g=np.mean([array(each[place][name]) for each in gradients], axis=0),
                before=before[name],
                made=values,
                ratio=float(np.squeeze(made[name]["ratio"])),
                excluded=bool(made[name]["excluded"]),
                x_after=array(weights[place + training + 1][name]),
            )
            before[name] = values
            if np.isfinite(of_layer.x).all() and np.isfinite(of_layer.g).all():
                yield of_layer


def array(value: Any) -> np.ndarray:
    """Return a value as float64, so that the comparison has the script's rounding alone."""
    return np.array(value, np.float64)


def difference(what: str, value: np.ndarray, expected: np.ndarray, scale: float = 0.0) -> str:
    """Say how an array differs from what it should be; "" where it does not.

    Where this is no number, because something before it went wrong, there is nothing to say.
    ``scale`` is the size of numbers whose rounding the array has; its own without it.
    """
    if value.shape != expected.shape:
        return f"{what} has the shape {value.shape} instead of {expected.shape}"
    if not np.isfinite(expected).all():
        return ""
    if not np.isfinite(value).all():
        return f"{what} has numbers that are not finite"
    largest = np.abs(expected).max()
    if np.abs(value - expected).max() <= TOLERANCE * largest + 1e-6 * scale:
        return ""
    if not value.any() or not expected.any():
        return f"{what} is zero and should not be" if expected.any() else f"{what} should be zero"
    factor = np.vdot(value, expected) / np.vdot(expected, expected)
    if (
        abs(factor - 1) > 0.01
        and np.abs(value - factor * expected).max() <= TOLERANCE * np.abs(value).max()
    ):
        return f"{what} is {factor:.3g} times what it should be"
    away = float(np.linalg.norm(value - expected) / np.linalg.norm(expected))
    return f"{what} is {percent(away)} away from what it should be"
