"""What the repair of each script that is broken on purpose must make true, on 2 ranks."""

import random
from typing import Any

import numpy as np

from hvdcourse.checks import training
from hvdcourse.checks.training import notes
from hvdcourse.evidence import ObservedRun, demand

# A hanging script is ended soon; an import that takes longer than this counts as work.
STANDSTILL_SECONDS = 6


def check_no_broadcast(run: ObservedRun) -> None:
    training.check_same_start(run)
    training.check_mean_gradient(run)


def check_uneven_shards(run: ObservedRun) -> None:
    steps = [len(notes(rank, "update")) / run.arguments["epochs"] for rank in run.ranks]
    wanted = "all ranks make equally many steps in an epoch"
    demand(wanted, [mine == steps[0] for mine in steps], [f"made {mine:g}" for mine in steps])
    training.check_shares(run)
    training.check_mean_gradient(run)


def check_unwrapped_optimizer(run: ObservedRun) -> None:
    before = len(notes(run.ranks[0], "update")) // 2
    own, used = ([training.gradients(rank, kind) for rank in run.ranks] for kind in KINDS)
    if len({mine.shape for mine in (*own, *used)}) == 1:
        mean = np.mean(own, axis=0)
        parts = (slice(before), slice(before, None))
        far = [[training.distance(mine[p], mean[p]) for p in parts] for mine in used]
        demand(
            "after the resume, too, all ranks use the mean of all ranks' gradients in every step",
            [after < training.COMPRESSED for _, after in far],
            [
                f"uses gradients {100 * before:.0f} % away from the mean before the resume, and "
                f"{100 * after:.0f} % away after it"
                for before, after in far
            ],
        )
    training.check_mean_gradient(run)


KINDS = ("gradient", "update")


def few_images(images: int, epochs: int = 2) -> dict[str, Any]:
    """Return arguments for a short run."""
    return {"images": images, "epochs": epochs, "batch_size": 16}


# Each lab's name with its arguments, whether it ends untouched, title, hint and check.
LABS = (
    (
        "lab_no_broadcast",
        lambda: few_images(96),
        True,
        "All ranks begin with the same weights",
        "broadcast_variables(model.variables, root_rank=0), before the first step. It is imported.",
        check_no_broadcast,
    ),
    (
        "lab_collective_on_rank_0",
        lambda: few_images(64),
        False,
        "Every rank takes part in the collective, and has its result",
        "Take the allreduce out of `if hvd.rank() == 0:`, and leave the print in it.",
        training.check_averaged_loss,
    ),
    (
        "lab_uneven_shards",
        lambda: few_images(random.choice((65, 97, 129))),
        False,
        "All ranks make equally many steps, and no image is lost",
        "batches(count, rank, size, batch_size) from hvdcourse.shards, which is imported, cuts "
        "every share into the same number of batches.",
        check_uneven_shards,
    ),
    (
        "lab_unwrapped_optimizer",
        lambda: few_images(96, epochs=1),
        True,
        "The optimizer that comes back averages, too",
        "Horovod has a load_model of its own, which wraps the optimizer that it finds in the file.",
        check_unwrapped_optimizer,
    ),
)
