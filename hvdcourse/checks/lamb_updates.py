"""The updates of ``lamb.py``'s layers, as each rank kept them, and how numbers compare."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hvdcourse.evidence import ObservedRank, ObservedRun, Unmet

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
    found = rank.all_found(name)
    if len(found) != count:
        seen = [f"rank {rank.rank}: kept {len(found)}"]
        raise Unmet(f"every rank keeps {count} values of {name!r} in its two trainings", seen)
    return found


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
        made = {one["name"]: one for one in layers[first : first + len(names)]}
        if update == 0:
            before = {name: {"m": 0 * array(weights[0][name])} for name in names}
            before = {name: {"m": one["m"], "v": one["m"]} for name, one in before.items()}
        for name in names:
            values = {key: array(made[name][key]) for key in ("m", "v", "r", "u")}
            found = LayerUpdate(
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
            if np.isfinite(found.x).all() and np.isfinite(found.g).all():
                yield found


def array(value: Any) -> np.ndarray:
    """Return a value as float64, so that the comparison has the script's rounding alone."""
    return np.array(value, np.float64)


def difference(what: str, found: np.ndarray, wanted: np.ndarray, scale: float = 0.0) -> str:
    """Say how an array differs from what it should be; "" where it does not.

    ``scale`` is the size of numbers whose rounding the array has; its own without it.
    """
    if found.shape != wanted.shape:
        return f"{what} has the shape {found.shape} instead of {wanted.shape}"
    if not np.isfinite(found).all():
        return f"{what} has numbers that are not finite"
    largest = np.abs(wanted).max()
    if np.abs(found - wanted).max() <= TOLERANCE * largest + 1e-6 * scale:
        return ""
    if not found.any() or not wanted.any():
        return f"{what} is zero and should not be" if wanted.any() else f"{what} should be zero"
    factor = np.vdot(found, wanted) / np.vdot(wanted, wanted)
    if np.abs(found - factor * wanted).max() <= TOLERANCE * np.abs(found).max():
        return f"{what} is {factor:.3g} times what it should be"
    away = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    return f"{what} is {100 * away:.2g} % away from what it should be"
