"""What each rank noted of its training: see ``hvdcourse.rank.observe_training``.

Weights and gradients are fingerprints: of each variable some projections, and last its norm.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import NotJudged, ObservedRank, Unmet, percent

# Of float32 sums in another order, and of gradients that were compressed on their way.
SMALL, COMPRESSED = 1e-4, 1e-2

# What a rank does where it leaves these notes: see ``rank.observe_training`` for the first ones,
# ``rank.observe_challenge`` for the others.
NOTED = {
    "place": "updates",
    "trained": "trains on",
    "evaluated": "evaluates",
    "gradient": "computes as gradients",
    "loss": "computes as gradients",
    "update": "updates",
    "signs": "updates",
    "end": "has learned",
    "batch": "trains on",
    "step": "updates",
    "bytes": "updates",
    "answers": "evaluates",
}


def notes(rank: ObservedRank, name: str) -> list[Any]:
    """Return a rank's notes under a name. Raises Unmet, or NotJudged, where there is none.

    What a model is called with before the first update is no evaluation: it may only build it. Nor
    does it train on that, but for the last, which gives the first gradient.
    """
    values = rank.notes(name, since="update" if name == "evaluated" else None)
    if name == "trained" and rank.notes("gradient"):
        values = values[-1 - len(rank.notes(name, since="gradient")) :]
    if not (values or rank.notes("update") or rank.notes("step")):
        raise NotJudged(
            "every rank trains a model",
            [
                f"rank {rank.rank}: no weights were updated; the training did not begin, or the "
                "script hides the error that ended it"
            ],
        )
    if not values:
        expected = "every rank trains, evaluates and ends with a model"
        raise Unmet(expected, [f"rank {rank.rank}: nothing was seen of what it {NOTED[name]}"])
    return values


def demand_finite(rank: ObservedRank) -> None:
    """Raise NotJudged where a rank's gradients or weights are no finite numbers any more."""
    updates = rank.notes("update")
    finite = {
        "gradient that it computed": [all_finite(note) for note in rank.notes("gradient")],
        "gradient that it updated with": [all_finite(update["gradient"]) for update in updates],
        "weights that it had": [all_finite(update["weights"]) for update in updates],
    }
    first = {what: met.index(False) for what, met in finite.items() if not all(met)}
    if first:
        what = min(first, key=first.__getitem__)
        raise NotJudged(
            "gradients and weights are finite numbers",
            [
                f"rank {rank.rank}: the {what} in step {first[what] + 1} of {len(updates)} has NaN "
                "or infinity, and from there on nothing can be compared"
            ],
        )


def all_finite(fingerprint: list[list[float]]) -> bool:
    """Whether there is no NaN and no infinity."""
    return bool(np.isfinite(np.array(fingerprint)).all())


def weights_before(rank: ObservedRank) -> np.ndarray:
    """Return the weights' fingerprints before each update: (updates, variables, numbers)."""
    demand_finite(rank)
    return np.array([update["weights"] for update in notes(rank, "update")])


def weights_at_end(rank: ObservedRank) -> np.ndarray:
    """Return the fingerprints of the weights at the end: (variables, numbers)."""
    demand_finite(rank)
    return np.array(notes(rank, "end")[0]["weights"])


def gradients(rank: ObservedRank, name: str) -> np.ndarray:
    """Return a rank's own gradients (``gradient``) or those it updated with (``update``).

    They are fingerprints, of shape (updates, variables, numbers).
    """
    values = notes(rank, name)
    demand_finite(rank)
    return np.array(values if name == "gradient" else [update["gradient"] for update in values])


def rates(rank: ObservedRank) -> np.ndarray:
    """Return the learning rate of each update, of shape (updates,)."""
    return np.array([update["rate"] for update in notes(rank, "update")], np.float64)


def distance(value: np.ndarray, reference: np.ndarray) -> float:
    """Return how far fingerprints are apart, relative to the reference; inf if shapes differ."""
    if value.shape != reference.shape:
        return float("inf")
    projections = np.s_[..., :-1]
    length = float(np.linalg.norm(reference[projections]))
    return float(np.linalg.norm((value - reference)[projections])) / max(length, 1e-30)


def far_away(distances: Sequence[float], from_what: str) -> list[str]:
    """Say of each rank how far its weights are from others."""
    return [
        f"has {from_what}"
        if away < SMALL
        else f"is {percent(away)} away from {from_what}"
        if away < float("inf")
        else f"has other variables than {from_what.removesuffix(' weights')}"
        for away in distances
    ]
