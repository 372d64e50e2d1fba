"""What each step of ``custom_loop.py`` must make true, on 2 ranks."""

import random
from typing import Any

from hvdcourse.checks import training

EPOCHS = 2


def arguments() -> dict[str, Any]:
    """Return arguments for one run: few images, first weights and orders that differ by rank."""
    return {
        "images": random.randrange(129, 160, 2),
        "epochs": EPOCHS,
        "batch_size": 16,
        "learning_rate": 0.02,
        "weights_seed": f"{random.randrange(1000)}{{rank}}",
    }


STEPS = (
    (
        1,
        "Every process knows its place, and its GPU",
        "hvd.init() once, then tf.config.set_visible_devices with the GPU whose number is "
        "hvd.local_rank(). A loop of one's own takes horovod.tensorflow, without .keras.",
        training.check_place,
    ),
    (
        2,
        "Every rank applies the mean of all ranks' gradients",
        "hvd.DistributedGradientTape(tape) returns a tape whose gradient(…) averages over ranks.",
        training.check_mean_gradient,
    ),
    (
        3,
        "All ranks go on with rank 0's weights",
        "hvd.broadcast_variables(variables, root_rank=0), once, behind the very first step: for "
        "model.variables, and for optimizer.variables, which are empty before it.",
        training.check_same_start,
    ),
    (
        4,
        "Each epoch's images are shared out among the ranks",
        "batches(count, rank, size, batch_size, seed=…, epoch=…) shuffles with the seed and deals "
        "the images out. All ranks must pass the same seed.",
        training.check_shares,
    ),
    (
        5,
        "The loss is the mean over all ranks",
        "hvd.allreduce(number, op=hvd.Average, name=…) on every rank, not on one alone.",
        training.check_averaged_loss,
    ),
)
