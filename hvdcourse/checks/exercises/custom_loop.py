"""What each step of ``custom_loop.py`` must make true, on 3 ranks and on 1."""

import random
from typing import Any

from hvdcourse.checks.evidence import ObservedRun, demand
from hvdcourse.checks.exercise import ALONE, UNEVEN_HOSTS, Exercise, Step, Trial
from hvdcourse.checks.exercises import shares, training
from hvdcourse.checks.exercises.training_notes import notes

EPOCHS = 2


def arguments() -> dict[str, Any]:
    """Return arguments for one run: few images, and first weights that differ by rank."""
    return {
        "images": random.choice(shares.COUNTS),
        "epochs": EPOCHS,
        "batch_size": shares.BATCH_SIZE,
        "learning_rate": 0.02,
        "weights_seed": f"{random.randrange(1000)}{{rank}}",
    }


def check_shares(run: ObservedRun) -> None:
    """The ranks share out each epoch's images, in an order that is new in each epoch."""
    shares.check_shares(run)
    batches = [notes(rank, "trained") for rank in run.ranks]
    demand(
        "the images are shuffled anew in each epoch",
        [of_rank[: len(of_rank) // EPOCHS] * EPOCHS != of_rank for of_rank in batches],
        [f"has the same batches in each of {EPOCHS} epochs" for _ in batches],
    )


STEPS = (
    Step(number=1, title="Every process knows its place, and its GPU", check=training.check_place),
    Step(
        number=2,
        title="Every rank applies the mean of all ranks' gradients",
        check=training.check_mean_gradient,
    ),
    Step(number=3, title="All ranks go on with rank 0's weights", check=training.check_same_start),
    Step(
        number=4,
        title="Each epoch's images are shared out among the ranks",
        check=check_shares,
    ),
    Step(number=5, title="The loss is the mean over all ranks", check=training.check_averaged_loss),
)

EXERCISE = Exercise(
    name="custom_loop",
    notebook="03_multi_gpu_horovodrun",
    observe="training",
    trials=lambda _: [
        Trial(hosts=UNEVEN_HOSTS, arguments=arguments()),
        Trial(hosts=ALONE, arguments=arguments()),
    ],
    steps=STEPS,
)
