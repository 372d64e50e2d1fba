"""What the repair of each script that is broken on purpose must make true, on 3 ranks and on 1."""

import itertools
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import (
    ObservedRank,
    ObservedRun,
    demand,
    demand_of_run,
    named_ranks,
    percent,
)
from hvdcourse.checks.exercise import ALONE, UNEVEN_HOSTS, Exercise, Step, Trial
from hvdcourse.checks.exercises import shares, training
from hvdcourse.checks.exercises.training_notes import (
    COMPRESSED,
    SMALL,
    distance,
    far_away,
    gradients,
    notes,
    weights_at_end,
    weights_before,
)

# A hanging script is ended soon; an import that takes longer than this counts as work.
STANDSTILL_SECONDS = 6
# 3 ranks that draw a third of the images each, by chance, have a third of them in common. The 64
# images of a rank are too many for chance to bring it to this.
MOST_IN_COMMON = 0.6
# Ranks that draw from all images, or from a share of their own, have more of them in an epoch.
LEAST_SEEN = 0.5


def check_no_broadcast(run: ObservedRun) -> None:
    check_always_alike(run)
    training.check_mean_gradient(run)


def check_always_alike(run: ObservedRun) -> None:
    """After every step all ranks have the same weights."""
    after = [[*weights_before(rank)[1:], weights_at_end(rank)] for rank in run.ranks]
    far = [list(map(distance, weights, after[0])) for weights in after]
    first = [int(np.argmax(np.array(of_rank) >= SMALL)) for of_rank in far]
    away = [of_rank[step] for of_rank, step in zip(far, first, strict=True)]
    told = zip(far_away(away, "rank 0's weights"), away, first, strict=True)
    demand(
        "after every step all ranks have the same weights",
        [one < SMALL for one in away],
        [words if one < SMALL else f"{words} after step {step + 1}" for words, one, step in told],
    )


def check_standstill(run: ObservedRun) -> None:
    training.check_averaged_loss(run)
    losses = np.ravel(run.ranks[0].reported("losses"))
    shown = [printed_losses(rank, losses) for rank in run.ranks]
    demand(
        "rank 0 prints the mean loss of every epoch, and no other rank prints it",
        [len(of_rank) == len(losses) * (rank == 0) for rank, of_rank in enumerate(shown)],
        [f"prints {training.in_words(np.array(of_rank))}" for of_rank in shown],
    )


def printed_losses(rank: ObservedRank, losses: np.ndarray) -> list[float]:
    """Return those of the losses that a rank has printed, with two places or more."""
    printed = [float(number) for number in re.findall(r"\d+\.\d{2,}", "\n".join(rank.output))]
    return [loss for loss in losses if any(abs(number - loss) < 0.006 for number in printed)]


def check_uneven_shards(run: ObservedRun) -> None:
    steps = [len(notes(rank, "update")) / run.arguments["epochs"] for rank in run.ranks]
    demand(
        "all ranks make the same number of steps in an epoch",
        [made == steps[0] for made in steps],
        [f"made {made:g}" for made in steps],
    )
    shares.check_shares(run)
    size = run.arguments["batch_size"]
    largest = [max(map(len, notes(rank, "trained"))) for rank in run.ranks]
    demand(
        f"with --batch-size {size} no batch has more images than that",
        [most <= size for most in largest],
        [f"has a batch of {most} images" for most in largest],
    )
    training.check_mean_gradient(run)


def check_unwrapped_optimizer(run: ObservedRun) -> None:
    resumed_at = len(notes(run.ranks[0], "update")) // 2
    counts, optimizers = (
        [[update[name] for update in notes(rank, "update")] for rank in run.ranks]
        for name in ("iteration", "optimizer")
    )
    own, used = ([gradients(rank, kind) for rank in run.ranks] for kind in ("gradient", "update"))
    if len({of_rank.shape for of_rank in (*own, *used)}) == 1:
        mean = np.mean(own, axis=0)
        before, after = slice(resumed_at), slice(resumed_at, None)
        demand(
            "all ranks use the mean of all ranks' gradients in every step, also after the resume",
            [distance(of_rank[after], mean[after]) < COMPRESSED for of_rank in used],
            [
                "before the resume its updates use "
                + ", and after it ".join(
                    training.gradient_in_words(
                        of_rank[part], mean[part], [computed[part] for computed in own], rank
                    )
                    for part in (before, after)
                )
                for rank, of_rank in enumerate(used)
            ],
        )
    training.check_mean_gradient(run)
    check_always_alike(run)
    demand(
        "the optimizer resumes with its state: it counts on where it stopped",
        [of_rank == list(range(len(of_rank))) for of_rank in counts],
        [
            f"after the resume, the optimizer has counted {of_rank[resumed_at]} of the "
            f"{resumed_at} steps: it is a new one, without a momentum"
            for of_rank in counts
        ],
    )
    demand(
        "what trains after the resume comes from the file",
        [len(set(of_rank)) > 1 for of_rank in optimizers],
        ["the optimizer of before the resume trains on: a second run would not have it"] * run.np,
    )


def check_own_images(run: ObservedRun) -> None:
    """In an epoch no two ranks train on the same images; by chance they may have some in common."""
    known = shares.known_samples("trained", run.arguments["images"])
    epochs = run.arguments["epochs"]
    by_rank = []
    for rank in run.ranks:
        batches = shares.samples_of(rank, "trained", known)
        by_rank.append(set(itertools.chain(*batches[: max(1, len(batches) // epochs)])))
    common = {
        (rank, other): len(by_rank[rank] & by_rank[other])
        / min(len(by_rank[rank]), len(by_rank[other]))
        for rank, other in itertools.combinations(range(run.np), 2)
    }
    lines = in_common(common)
    demand_of_run(
        "each rank trains on images of its own: in the first epoch, no two have more than "
        f"{percent(MOST_IN_COMMON)} of them in common",
        all(part <= MOST_IN_COMMON for part in common.values()),
        *lines,
    )
    # With a seed for each rank every two have some in common, by chance; with shares no two have.
    demand_of_run(
        "either no two ranks have images in common, or, by chance, every two have",
        len(set(map(bool, common.values()))) <= 1,
        *lines,
    )
    seen = len(set.union(*by_rank)) / len(known)
    demand_of_run(
        f"together, the ranks train on all images: on at least {percent(LEAST_SEEN)} of them in "
        "the first epoch",
        seen >= LEAST_SEEN,
        f"all ranks: {percent(seen)} of the images",
    )
    training.check_same_start(run)
    training.check_mean_gradient(run)


def in_common(parts: dict[tuple[int, int], float]) -> list[str]:
    """Return in words which part of their images pairs of ranks have in common."""
    texts = [
        f"have {'all' if part == 1 else percent(part)} of their images in common"
        for part in parts.values()
    ]
    if len(set(texts)) == 1:
        any_two = "any two of " * (len(texts) > 1)
        return [f"{any_two}{named_ranks(sorted(set(itertools.chain(*parts))))} {texts[0]}"]
    return [f"{named_ranks(pair)} {text}" for pair, text in zip(parts, texts, strict=True)]


def few_images(images: int, epochs: int = 2) -> dict[str, Any]:
    """Return arguments for a short run."""
    return {"images": images, "epochs": epochs, "batch_size": 16}


def trials(runs: list[dict[str, Any]]) -> list[Trial]:
    """Return a run on 3 ranks with each of these arguments, and one on 1 rank with the last."""
    several = [Trial(hosts=UNEVEN_HOSTS, arguments=arguments) for arguments in runs]
    return [*several, Trial(hosts=ALONE, arguments=runs[-1])]


def lab(name: str, runs: Callable[[], list[dict[str, Any]]], step: Step) -> Exercise:
    """Return the exercise of a script with one mistake to repair; ``runs`` are their arguments."""
    return Exercise(
        name=name,
        notebook="03_multi_gpu_horovodrun",
        observe="training",
        trials=lambda _: trials(runs()),
        steps=(step,),
        standstill=STANDSTILL_SECONDS,
    )


EXERCISES = (
    lab(
        name="lab_different_models",
        runs=lambda: [few_images(97)],
        step=Step(
            number=1, title="All ranks train one and the same model", check=check_no_broadcast
        ),
    ),
    lab(
        name="lab_standstill",
        runs=lambda: [few_images(65)],
        step=Step(
            number=1,
            title="The run ends, and every rank has the mean of all ranks' losses",
            check=check_standstill,
        ),
    ),
    lab(
        name="lab_one_image_more",
        # Two images more than steps hold, and so few that no step is full.
        runs=lambda: [
            few_images(random.choice((98, 146, 194))),
            few_images(random.choice((7, 10))),
        ],
        step=Step(
            number=1,
            title="The run ends, and each image is used once an epoch",
            check=check_uneven_shards,
        ),
    ),
    lab(
        name="lab_drift_after_resume",
        runs=lambda: [few_images(97, epochs=1)],
        step=Step(
            number=1,
            title="The ranks agree after the resume as they did before it",
            check=check_unwrapped_optimizer,
        ),
    ),
    lab(
        name="lab_no_gain",
        runs=lambda: [few_images(random.choice((193, 241, 289)))],
        step=Step(
            number=1,
            title="Every rank contributes to a step what the others do not",
            check=check_own_images,
        ),
    ),
)
