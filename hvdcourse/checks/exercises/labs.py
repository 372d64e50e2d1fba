"""What the repair of each script that is broken on purpose must make true, on 3 ranks."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import ObservedRun, demand, percent
from hvdcourse.checks.exercise import UNEVEN_HOSTS, Exercise, Step, Trial
from hvdcourse.checks.exercises import shares, training
from hvdcourse.checks.exercises.training_notes import COMPRESSED, distance, gradients, notes

# A hanging script is ended soon; an import that takes longer than this counts as work.
STANDSTILL_SECONDS = 6
# 3 ranks that draw a third of the images each, by chance, have a third of them in common. The 64
# images of a rank are too many for chance to bring it to this.
MOST_IN_COMMON = 0.6


def check_no_broadcast(run: ObservedRun) -> None:
    training.check_same_start(run)
    training.check_mean_gradient(run)


def check_uneven_shards(run: ObservedRun) -> None:
    steps = [len(notes(rank, "update")) / run.arguments["epochs"] for rank in run.ranks]
    demand(
        "all ranks make equally many steps in an epoch",
        [made == steps[0] for made in steps],
        [f"made {made:g}" for made in steps],
    )
    shares.check_shares(run)
    training.check_mean_gradient(run)


def check_unwrapped_optimizer(run: ObservedRun) -> None:
    resumed_at = len(notes(run.ranks[0], "update")) // 2
    own, used = ([gradients(rank, kind) for rank in run.ranks] for kind in ("gradient", "update"))
    if len({of_rank.shape for of_rank in (*own, *used)}) == 1:
        mean = np.mean(own, axis=0)
        far = [
            (
                distance(of_rank[:resumed_at], mean[:resumed_at]),
                distance(of_rank[resumed_at:], mean[resumed_at:]),
            )
            for of_rank in used
        ]
        demand(
            "all ranks use the mean of all ranks' gradients in every step, also after the resume",
            [after < COMPRESSED for _, after in far],
            [
                f"uses gradients {percent(before)} away from the mean before the resume, and "
                f"{percent(after)} away after it"
                for before, after in far
            ],
        )
    training.check_mean_gradient(run)


def check_own_images(run: ObservedRun) -> None:
    """In an epoch no two ranks train on the same images; by chance they may have some in common."""
    known = shares.known_samples("trained", run.arguments["images"])
    epochs = run.arguments["epochs"]
    by_rank = []
    for rank in run.ranks:
        batches = shares.samples_of(rank, "trained", known)
        by_rank.append(set(itertools.chain(*batches[: max(1, len(batches) // epochs)])))
    common = [
        {other: len(own & images) / len(own) for other, images in enumerate(by_rank) if other != n}
        for n, own in enumerate(by_rank)
    ]
    demand(
        "each rank trains on images of its own: in the first epoch, at most "
        f"{percent(MOST_IN_COMMON)} of them are those of another rank",
        [max(of_rank.values()) <= MOST_IN_COMMON for of_rank in common],
        [
            "; ".join(
                f"{percent(part)} of its images are also those of rank {other}"
                for other, part in of_rank.items()
            )
            for of_rank in common
        ],
    )
    training.check_same_start(run)
    training.check_mean_gradient(run)


def few_images(images: int, epochs: int = 2) -> dict[str, Any]:
    """Return arguments for a short run."""
    return {"images": images, "epochs": epochs, "batch_size": 16}


def lab(
    name: str, arguments: Callable[[], dict[str, Any]], step: Step, *, ends_untouched: bool
) -> Exercise:
    """Return the exercise of a script with one mistake to repair."""
    return Exercise(
        name=name,
        notebook="03_multi_gpu_horovodrun",
        observe="training",
        trials=lambda _: [Trial(hosts=UNEVEN_HOSTS, arguments=arguments())],
        steps=(step,),
        standstill=STANDSTILL_SECONDS,
        ends_untouched=ends_untouched,
    )


EXERCISES = (
    lab(
        name="lab_different_models",
        arguments=lambda: few_images(97),
        ends_untouched=True,
        step=Step(
            number=1, title="All ranks train one and the same model", check=check_no_broadcast
        ),
    ),
    lab(
        name="lab_standstill",
        arguments=lambda: few_images(65),
        ends_untouched=False,
        step=Step(
            number=1,
            title="The run ends, and every rank has the mean of all ranks' losses",
            check=training.check_averaged_loss,
        ),
    ),
    lab(
        name="lab_one_image_more",
        arguments=lambda: few_images(random.choice((97, 145, 193))),
        ends_untouched=False,
        step=Step(
            number=1,
            title="The run ends, and each image is used once an epoch",
            check=check_uneven_shards,
        ),
    ),
    lab(
        name="lab_drift_after_resume",
        arguments=lambda: few_images(97, epochs=1),
        ends_untouched=True,
        step=Step(
            number=1,
            title="The ranks agree after the resume as they did before it",
            check=check_unwrapped_optimizer,
        ),
    ),
    lab(
        name="lab_no_gain",
        arguments=lambda: few_images(random.choice((193, 241, 289))),
        ends_untouched=True,
        step=Step(
            number=1,
            title="Every rank contributes to a step what the others do not",
            check=check_own_images,
        ),
    ),
)
