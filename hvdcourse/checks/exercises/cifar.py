"""What each step of ``cifar.py`` must make true, on 3 ranks and, of the learning rate, on 1."""

import itertools
import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import ObservedRank, ObservedRun, demand, percent
from hvdcourse.checks.exercise import ALONE, UNEVEN_HOSTS, Exercise, Step, Trial
from hvdcourse.checks.exercises import learning_rate, training
from hvdcourse.checks.exercises.training_notes import notes, rates

EPOCHS = 8
# The schedule of the script: the rate falls to a tenth after half of the epochs.
FACTORS = (1,) * 4 + (0.1,) * 4
# Of so many updates one would tell a vector that is moved by Adam.
UPDATES_TO_TELL = 8
# A bias before a normalization has a gradient of rounding errors alone, which is far below this.
GRADIENT = 1e-4
# How far outputs are apart, relative to their spread. In 40 steps moving averages of a momentum of
# 0.9 come to within 0.2, and those of 0.99 stay more than 0.8 away.
ALIKE, CLOSE, DIFFERENT = 1e-3, 0.4, 0.01


def arguments() -> dict[str, Any]:
    """Return arguments for one run of 40 steps on 3 ranks, with rates that none mistakes."""
    return {
        "images": random.randrange(290, 312),
        "epochs": EPOCHS,
        "batch_size": 21,
        "learning_rate": round(random.uniform(0.04, 0.05), 4),
        "lamb_learning_rate": round(random.uniform(0.008, 0.012), 4),
        "warmup_epochs": 3,
        "seed": random.randrange(1000),
        "weights_seed": f"{random.randrange(1000)}{{rank}}",
    }


def trials() -> Iterator[Trial]:
    """Yield a run on 3 ranks, and a short one on 1 for the learning rate."""
    yield Trial(hosts=UNEVEN_HOSTS, arguments=arguments())
    yield Trial(hosts=ALONE, arguments={**arguments(), "images": 25}, steps=(2, 3))


def check_normalization(run: ObservedRun) -> None:
    """Outputs depend on the batch in training, and hardly change when the model evaluates."""
    measured = [rank.notes("normalized")[:1] for rank in run.ranks]
    demand(
        "the network has moving averages: weights that no gradient changes",
        map(bool, measured),
        ["has some" if of_rank else "has none" for of_rank in measured],
    )
    modes = [of_rank[0] for of_rank in measured]
    demand(
        "the training normalizes over the batch: what comes out for an image depends on the other "
        "images of its batch; in evaluation it does not",
        [
            of_rank["batch_in_training"] > DIFFERENT and of_rank["batch_in_evaluation"] < ALIKE
            for of_rank in modes
        ],
        [
            f"another batch changes outputs by {percent(of_rank['batch_in_training'])} in "
            f"training and by {percent(of_rank['batch_in_evaluation'])} in evaluation"
            for of_rank in modes
        ],
    )
    check_relus(modes)
    demand(
        "at the end the moving averages have come close to the batches' statistics: for training "
        "images, evaluation gives the outputs of training, to within "
        f"{100 * CLOSE:g} % of their spread",
        [of_rank["modes"] < CLOSE for of_rank in modes],
        [
            f"the outputs are {percent(of_rank['modes'])} apart: of the training images, "
            f"{percent(of_rank['right_in_training'])} are classified correctly in training, and "
            f"{percent(of_rank['right_in_evaluation'])} in evaluation"
            for of_rank in modes
        ],
    )


def check_relus(modes: list[dict[str, Any]]) -> None:
    """What goes into each ReLU is normalized over the batch, for each channel by itself."""
    relus = [of_rank["batch_before_relu"] for of_rank in modes]
    alike = [
        [str(number) for number, apart in enumerate(of_rank, start=1) if apart < ALIKE]
        for of_rank in relus
    ]
    demand(
        "what goes into each ReLU is normalized over the batch",
        [not numbers for numbers in alike],
        [
            f"what goes into ReLU {', '.join(numbers)} of {len(of_rank)} is not normalized"
            for numbers, of_rank in zip(alike, relus, strict=True)
        ],
    )
    demand(
        "each channel is normalized by itself: the last axis",
        [of_rank["by_channel"] or not of_rank["batch_before_relu"] for of_rank in modes],
        ["no moving average is as long as there are channels" for _ in modes],
    )


RATES = ("learning_rate", "lamb_learning_rate")
check_scaled_rate = partial(learning_rate.check_scaled, names=RATES)
check_warmup = partial(learning_rate.check_warmup, factors=FACTORS, names=RATES)


def check_lamb(run: ObservedRun) -> None:
    """The first update has LAMB's length and direction; what starts at 0 is not adapted."""
    # Of rank 0, since the others may get its weights only after the first update.
    far = far_from_lamb(run.ranks[0])
    demand(
        "the first update moves every layer's weights by the rate times their norm, and in the "
        "direction of Adam",
        [far < 0.2],
        [f"a layer's update is {percent(far)} away from that"],
    )
    factor = moved_by_norm(run.ranks[0])
    demand(
        "every update moves a kernel by the rate times the norm that it has by then",
        [abs(factor - 1) < 0.01],
        [f"a kernel moved by {factor:.3g} times that"],
    )
    check_excluded(run.ranks[0])
    single = run.arguments["lamb_learning_rate"]
    highest = [rates(rank).max() for rank in run.ranks]
    demand(
        f"the highest rate is LAMB's own, {single}, or {run.np} times that",
        [learning_rate.is_any_of(rate, (single, single * run.np)) for rate in highest],
        [f"the highest is {rate:g}" for rate in highest],
    )
    training.check_mean_gradient(run)


def check_excluded(rank: ObservedRank) -> None:
    """Weights with one dimension move as by Adam, without weight decay."""
    adapted, count = adapted_vectors(rank)
    demand(
        "biases and the parameters of normalizations are excluded: they move as by Adam, and not "
        "by the rate times their norm",
        [adapted == 0],
        [
            f"{adapted} of the {count} such vectors move by the rate times their norm in every "
            "update"
        ],
    )
    farthest, decayed = far_from_adam(rank)
    demand(
        "the first update moves biases and the parameters of normalizations as Adam does, and adds "
        "no weight decay",
        [farthest < 0.5 and decayed < 0.005],
        [
            f"such a vector is {percent(farthest)} away from that; those that do not start at zero "
            f"typically are {percent(decayed)} away"
        ],
    )


def first_move(rank: ObservedRank) -> tuple[np.ndarray, np.ndarray]:
    """Return the variables' norms before the first update, and its moves for a rate of 1."""
    before, after = notes(rank, "update")[:2]
    weights = np.array(before["weights"])
    change = (np.array(after["weights"]) - weights)[:, :-1] / before["rate"]
    return weights[:, -1], change


def far_from_lamb(rank: ObservedRank) -> float:
    """Return how far, relatively, the first update of a variable is from LAMB's, at most."""
    norms, change = first_move(rank)
    signs = np.array(notes(rank, "signs")[0])
    ratio = np.divide(norms, signs[:, -1], out=np.zeros_like(norms), where=signs[:, -1] > 0)
    # What starts at 0 is not adapted, and where the ratio is 1 it makes no difference.
    adapted = (ratio > 0) & (np.abs(ratio - 1) > 0.01)
    of_lamb = -ratio[:, None] * signs[:, :-1]
    error = np.linalg.norm(change - of_lamb, axis=1) / np.linalg.norm(of_lamb, axis=1).clip(1e-30)
    return float(error[adapted].max(initial=0.0)) if adapted.any() else np.inf


def moved_by_norm(rank: ObservedRank) -> float:
    """Return how far a kernel moved for its norm and the rate, where that is farthest from 1."""
    updates = notes(rank, "update")
    kernels = np.array(notes(rank, "place")[0]["dimensions"]) > 1
    factors = [1.0]
    for before, after in itertools.pairwise(updates):
        expected = before["rate"] * np.array(before["weights"])[:, -1]
        moved = np.array(after["moved"])
        # What starts at 0, or has no gradient, is not adapted.
        adapted = kernels & (expected > 0) & (moved > 0)
        factors += (moved[adapted] / expected[adapted]).tolist()
    return max(factors, key=lambda factor: abs(factor - 1))


def far_from_adam(rank: ObservedRank) -> tuple[float, float]:
    """Return how far the first update of a weight with one dimension is from Adam's, at most.

    And how far those that do not start at 0, which a weight decay would move, typically are.
    """
    norms, change = first_move(rank)
    signs = np.array(notes(rank, "signs")[0])
    gradient = np.array(notes(rank, "update")[0]["gradient"])[:, -1]
    vectors = np.array(notes(rank, "place")[0]["dimensions"]) == 1
    told = vectors & (signs[:, -1] > 0) & (gradient > GRADIENT * signs[:, -1])
    away = np.linalg.norm(change + signs[:, :-1], axis=1)[told]
    away /= np.linalg.norm(signs[told, :-1], axis=1)
    decaying = away[norms[told] > 0]
    return float(away.max(initial=0)), float(np.median(decaying)) if decaying.size else 0.0


def adapted_vectors(rank: ObservedRank) -> tuple[int, int]:
    """Return how many of the weights with one dimension LAMB adapts, and how many there are.

    The first update is left out: there Adam moves a vector of ones by just its norm.
    """
    updates = notes(rank, "update")[1 : 2 + UPDATES_TO_TELL]
    vectors = np.array(notes(rank, "place")[0]["dimensions"]) == 1
    adapted = vectors.copy()
    for before, after in itertools.pairwise(updates):
        norms = np.array(before["weights"])[:, -1]
        by_norm = before["rate"] * norms
        adapted &= (norms > 0) & (np.abs(np.array(after["moved"]) - by_norm) < 0.002 * by_norm)
    return int(adapted.sum()), int(vectors.sum())


STEPS = (
    Step(
        number=1,
        title="Activations are normalized over the batch, in evaluation too",
        check=check_normalization,
    ),
    Step(
        number=2, title="The learning rate grows with the number of ranks", check=check_scaled_rate
    ),
    Step(
        number=3, title="The learning rate warms up, then follows its schedule", check=check_warmup
    ),
    Step(
        number=4,
        title="The optimizer is LAMB, with biases and normalization excluded",
        check=check_lamb,
    ),
)

EXERCISE = Exercise(
    name="cifar",
    notebook="04_convergence",
    observe="training",
    trials=lambda _: trials(),
    steps=STEPS,
)
