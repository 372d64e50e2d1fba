"""What the learning rate of distributed training must do: grow with the ranks, and warm up."""

from collections.abc import Iterable, Sequence

import numpy as np

from hvdcourse.checks.evidence import ObservedRun, demand, percent
from hvdcourse.checks.exercises.training_notes import rates

NEARLY_ALL = 1e-3


def by_epoch(run: ObservedRun) -> list[np.ndarray]:
    """Return each rank's learning rates as an array of shape (epochs, steps)."""
    epochs = run.arguments["epochs"]
    by_rank = [rates(rank) for rank in run.ranks]
    demand(
        "every epoch has the same number of updates",
        [len(of_rank) > 0 and len(of_rank) % epochs == 0 for of_rank in by_rank],
        [f"{len(of_rank)} updates in {epochs} epochs" for of_rank in by_rank],
    )
    return [of_rank.reshape(epochs, -1) for of_rank in by_rank]


def is_any_of(rate: float, expected: Iterable[float]) -> bool:
    """Whether a rate is one of those expected."""
    return any(abs(rate / candidate - 1) < NEARLY_ALL for candidate in expected)


def check_scaled(run: ObservedRun, names: Sequence[str]) -> None:
    """The highest rate is one of the arguments of these names, times the number of ranks."""
    singles = [run.arguments[name] for name in names]
    highest = [rates(rank).max() for rank in run.ranks]
    demand(
        "the highest learning rate is "
        + ", or ".join(f"{single} x {run.np} = {single * run.np:g}" for single in singles),
        [is_any_of(rate, [single * run.np for single in singles]) for rate in highest],
        [
            f"the highest is {rate:g}: "
            + ", or ".join(f"{rate / single:.3g} times {single}" for single in singles)
            for rate in highest
        ],
    )


def check_warmup(run: ObservedRun, factors: Sequence[float], names: Sequence[str]) -> None:
    """The rate rises during the warmup; then it is the highest times the schedule's factors.

    ``factors`` has one number for each epoch, those of the warmup included. The rate of a single
    process is one of the arguments of these ``names``.
    """
    warm, by_rank = run.arguments["warmup_epochs"], by_epoch(run)
    warmups = [of_rank[:warm].ravel() for of_rank in by_rank]
    highest = [of_rank.max() for of_rank in by_rank]
    singles = [run.arguments[name] for name in names]
    begin = highest[0] / run.np
    whose = (
        "that of a single process" if is_any_of(begin, singles) else f"1/{run.np} of the highest"
    )
    demand(
        f"in the first {'epoch' if warm == 1 else f'{warm} epochs'} the rate rises with every "
        f"step, from {begin:.4g}, {whose}, to {highest[0]:.4g}"
        if run.np > 1
        else "on one rank nothing is warmed up: the rate is the highest from the first step on",
        [rises(warmup, top / run.np, top) for warmup, top in zip(warmups, highest, strict=True)],
        [
            f"the rates are {warmup[0]:.4g}, {warmup[1]:.4g}, … {warmup[-1]:.4g}"
            + how_far(warmup[-1], top / run.np, top)
            for warmup, top in zip(warmups, highest, strict=True)
        ],
    )
    rests = [of_rank[warm:] for of_rank in by_rank]
    schedules = [top * np.array(factors)[warm:, None] for top in highest]
    demand(
        "after the warmup the schedule alone sets the rate: "
        + ", then ".join(f"{epoch[0]:.4g}" for epoch in schedules[0]),
        [
            np.allclose(rest, schedule, rtol=NEARLY_ALL)
            for rest, schedule in zip(rests, schedules, strict=True)
        ],
        [
            ", then ".join(map(from_to, rest)) + how_off(rest / schedule, [*singles, top])
            for rest, schedule, top in zip(rests, schedules, highest, strict=True)
        ],
    )
    twice = [single * run.np**2 for single in singles]
    demand(
        "the callbacks get the full rate as it is: it has the number of ranks in it already",
        [run.np == 1 or not is_any_of(top, twice) for top in highest],
        [f"the highest rate is {top:g}: multiplied by {run.np} twice" for top in highest],
    )


def how_far(last: float, begin: float, end: float) -> str:
    """Tell how far a warmup has come with its last rate, where that is not far enough."""
    if abs(last / begin - 1) < NEARLY_ALL:
        return ": they end where they should begin"
    share = (last - begin) / (end - begin) if end > begin else 1.0
    return f": {percent(share)} of the way at the end" if 0 < share < 0.9 else ""


def from_to(rates_of_epoch: np.ndarray) -> str:
    """Tell the first rate of an epoch, and the last one where it is another."""
    first, last = (f"{rate:.4g}" for rate in rates_of_epoch[[0, -1]])
    return first if first == last else f"{first} to {last}"


def how_off(factors: np.ndarray, learning_rates: Iterable[float]) -> str:
    """Tell by what all rates are multiplied that should not be, where it is one number."""
    factor = float(factors.flat[0])
    if not np.allclose(factors, factor, rtol=NEARLY_ALL) or abs(factor - 1) < NEARLY_ALL:
        return ""
    if is_any_of(factor, learning_rates):
        return f": a rate is multiplied by a rate, {factor:g}, where a factor belongs"
    return f": {factor:.3g} times what it should be"


def rises(warmup: np.ndarray, begin: float, end: float) -> bool:
    """Whether the rates lie, but for one step's worth, on the line from begin to end."""
    rise = (end - begin) / len(warmup)
    line = begin + rise * np.arange(1, len(warmup) + 1)
    return bool(np.all(np.abs(warmup - line) <= 1.01 * rise + NEARLY_ALL * end))
