"""What each step of ``fashion_mnist.py`` must make true, on 3 ranks, resumed, and on 1."""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import ObservedRank, ObservedRun, counted, demand
from hvdcourse.checks.exercise import ALONE, UNEVEN_HOSTS, Exercise, Step, Trial
from hvdcourse.checks.exercises import learning_rate, shares, training
from hvdcourse.checks.exercises.training_notes import (
    COMPRESSED,
    SMALL,
    distance,
    far_away,
    notes,
    weights_at_end,
    weights_before,
)
from hvdcourse.rank.variables import COPY_VARIABLE

EPOCHS, WARMUP_EPOCHS, KILLED_AFTER = 5, 2, 3
# The schedule of the script: after half of the epochs and after three quarters of them.
FACTORS = (1, 1, 1, 0.1, 0.01)


def arguments(folder: Path) -> dict[str, Any]:
    """Return arguments for one run: few images, and shares of unequal length.

    Of 3 ranks the last one has full batches alone; the others' one image more makes one batch more.
    Every rank draws its first weights apart, and has a folder that no other rank sees.
    """
    batch_size = random.choice((21, 23, 25))
    return {
        "images": 3 * 3 * batch_size + 2,
        "epochs": EPOCHS,
        "batch_size": batch_size,
        "learning_rate": 0.02,
        "warmup_epochs": WARMUP_EPOCHS,
        "seed": random.randrange(1000),
        "weights_seed": f"{random.randrange(1000)}{{rank}}",
        "folder": str(folder / "{rank}"),
    }


def check_voice(run: ObservedRun) -> None:
    training.check_one_voice(run)
    lines = run.ranks[0].output
    demand(
        "rank 0 prints during the training, too",
        [len(lines) > 1],
        [f"printed {counted(len(lines), 'line')} in all"],
    )


def check_validation(run: ObservedRun) -> None:
    shares.check_validation(run, metrics="val")
    for name in ("val_accuracy", "val_loss"):
        values = [np.ravel(np.array(value, np.float64)) for value in run.reported(name)]
        demand(
            f"{name} is the same on every rank after every epoch",
            [np.array_equal(of_rank, values[0]) for of_rank in values],
            [f"has {training.in_words(of_rank)}" for of_rank in values],
        )


def check_saving(run: ObservedRun) -> None:
    looked = [bool(rank.notes("search")) for rank in run.ranks]
    demand(
        "only rank 0 looks for a checkpoint",
        [not of_rank for of_rank in looked[1:]],
        ["looked for a checkpoint" if of_rank else "did not look" for of_rank in looked],
    )
    training.check_one_writer(run)
    if run.earlier:
        check_resumed(run, run.earlier[0])


def check_resumed(run: ObservedRun, whole: ObservedRun) -> None:
    """A resumed run goes on where the killed one was, and ends like one that was never killed."""
    steps = [len(notes(rank, "update")) // EPOCHS for rank in whole.ranks]
    left = [
        len(notes(rank, "update")) / per_epoch
        for rank, per_epoch in zip(run.ranks, steps, strict=True)
    ]
    demand(
        f"after a kill at the end of epoch {KILLED_AFTER} of {EPOCHS}, every rank goes on with "
        f"epoch {KILLED_AFTER + 1}",
        [epochs == EPOCHS - KILLED_AFTER for epochs in left],
        [f"made {epochs:g} more epochs" for epochs in left],
    )
    far = [
        distance(weights_before(rank)[0], weights_before(of_whole)[KILLED_AFTER * per_epoch])
        for rank, of_whole, per_epoch in zip(run.ranks, whole.ranks, steps, strict=True)
    ]
    demand(
        "before its first step, every rank of the resumed run has the weights of the killed one",
        [away < SMALL for away in far],
        far_away(far, "the killed run's weights"),
    )
    far = [
        distance(weights_at_end(rank), weights_at_end(of_whole))
        for rank, of_whole in zip(run.ranks, whole.ranks, strict=True)
    ]
    demand(
        "the resumed run ends with the weights of a run that was never killed: the optimizer's "
        "state is loaded (step 7) and broadcast (step 4), and its gradients are still averaged",
        [away < COMPRESSED / 10 for away in far],
        far_away(far, "the other run's weights"),
    )


RATES = ("learning_rate",)
check_scaled_rate = partial(learning_rate.check_scaled, names=RATES)
check_warmup = partial(learning_rate.check_warmup, factors=FACTORS, names=RATES)


def check_novograd(run: ObservedRun) -> None:
    """The first update divides each layer's gradient by its norm, and so moves all layers alike."""
    lengths = moved_by_layer(run.ranks[0])
    typical = float(np.median(lengths))
    spread = float(np.max(np.abs(lengths / typical - 1))) if typical > 0 else np.inf
    shown = ", ".join(f"{length:.3g}" for length in lengths[:4])
    demand(
        "the first update moves every layer equally far for its rate, against its gradient: "
        "each layer's gradient is divided by its norm",
        [spread < 0.05],
        [f"for a rate of 1 the first layers moved by {shown}, … (0: not along its gradient)"],
    )


def moved_by_layer(rank: ObservedRank) -> np.ndarray:
    """Return how far the first update moved each variable along its gradient, for a rate of 1."""
    first, second = notes(rank, "update")[:2]
    gradient = np.array(first["gradient"])
    moved = (np.array(first["weights"]) - np.array(second["weights"]))[:, :-1] / first["rate"]
    along = np.einsum("vp,vp->v", moved, gradient[:, :-1])
    squared = np.einsum("vp,vp->v", gradient[:, :-1], gradient[:, :-1])
    ratio = np.divide(along, squared, out=np.zeros_like(along), where=squared > 0)
    rest = np.linalg.norm(moved - ratio[:, None] * gradient[:, :-1], axis=1)
    parallel = rest <= 0.02 * np.linalg.norm(moved, axis=1) + 1e-9
    # A layer behind a convolution that is still 0 has no gradient, and does not move.
    return np.where(parallel, ratio * gradient[:, -1], 0.0)[gradient[:, -1] > 0]


def trials(folder: Path) -> Iterator[Trial]:
    """Yield a run on 3 ranks, that run again from where a kill would have left it, and one on 1."""
    chosen = arguments(folder / "whole")
    share = chosen["images"] // sum(UNEVEN_HOSTS)
    places = f"{folder / 'whole'}:{folder / 'killed'}"
    keep = {COPY_VARIABLE: f"{KILLED_AFTER}:{KILLED_AFTER * share}:{places}"}
    yield Trial(hosts=UNEVEN_HOSTS, arguments=chosen, environment=keep)
    resumed = {**chosen, "folder": str(folder / "killed" / "{rank}")}
    yield Trial(
        hosts=UNEVEN_HOSTS,
        arguments=resumed,
        steps=(4, 7),
        about=", resumed from a checkpoint,",
    )
    alone = {**arguments(folder / "alone"), "images": 50}
    yield Trial(hosts=ALONE, arguments=alone, steps=(1, 5, 6, 8, 9))


STEPS = (
    Step(number=1, title="Every process knows its place, and its GPU", check=training.check_place),
    Step(number=2, title="Only rank 0 prints", check=check_voice),
    Step(
        number=3,
        title="Every rank applies the mean of all ranks' gradients",
        check=training.check_mean_gradient,
    ),
    Step(
        number=4,
        title="All ranks start from rank 0's weights",
        check=training.check_broadcast_start,
    ),
    Step(
        number=5,
        title="Each epoch's images are shared out among the ranks",
        check=shares.check_shuffled_shares,
    ),
    Step(
        number=6,
        title="The test images are shared out, and the metrics are averaged",
        check=check_validation,
    ),
    Step(
        number=7,
        title="Only rank 0 saves, and every rank resumes from its checkpoint",
        check=check_saving,
    ),
    Step(
        number=8, title="The learning rate grows with the number of ranks", check=check_scaled_rate
    ),
    Step(
        number=9, title="The learning rate warms up, then follows its schedule", check=check_warmup
    ),
    Step(
        number=10, title="The optimizer is NovoGrad, at the same scaled rate", check=check_novograd
    ),
)

EXERCISE = Exercise(
    name="fashion_mnist",
    notebook="03_multi_gpu_horovodrun",
    observe="training",
    trials=trials,
    steps=STEPS,
)
