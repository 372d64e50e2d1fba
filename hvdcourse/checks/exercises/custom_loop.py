"""What each step of ``custom_loop.py`` must make true, on 3 ranks and on 1."""

import random
from typing import Any

from hvdcourse.checks.exercise import (
    ALONE,
    UNEVEN_HOSTS,
    Exercise,
    Step,
    Trial,
    draw_count,
)
from hvdcourse.checks.exercises import shares, training

EPOCHS = 2


def arguments() -> dict[str, Any]:
    """Return arguments for one run: few images, first weights and orders that differ by rank."""
    return {
        "images": draw_count(129, 160),
        "epochs": EPOCHS,
        "batch_size": 16,
        "learning_rate": 0.02,
        "weights_seed": f"{random.randrange(1000)}{{rank}}",
    }


STEPS = (
    Step(
        number=1,
        title="Every process knows its place, and its GPU",
        hint=(
            "hvd.init() once, then tf.config.set_visible_devices with the GPU whose number is "
            "hvd.local_rank(). A loop of one's own takes horovod.tensorflow, without .keras."
        ),
        check=training.check_place,
    ),
    Step(
        number=2,
        title="Every rank applies the mean of all ranks' gradients",
        hint=(
            "hvd.DistributedGradientTape(tape) returns a tape whose gradient(…) averages over "
            "ranks."
        ),
        check=training.check_mean_gradient,
    ),
    Step(
        number=3,
        title="All ranks go on with rank 0's weights",
        hint=(
            "hvd.broadcast_variables(variables, root_rank=0), once, behind the very first step: "
            "for model.variables, and for optimizer.variables, which are empty before it."
        ),
        check=training.check_same_start,
    ),
    Step(
        number=4,
        title="Each epoch's images are shared out among the ranks",
        hint=(
            "batches(count, rank, size, batch_size, seed=…, epoch=…) shuffles with the seed and "
            "deals the images out. All ranks must pass the same seed."
        ),
        check=shares.check_shares,
    ),
    Step(
        number=5,
        title="The loss is the mean over all ranks",
        hint="hvd.allreduce(number, op=hvd.Average, name=…) on every rank, not on one alone.",
        check=training.check_averaged_loss,
    ),
)

EXERCISE = Exercise(
    name="custom_loop",
    notebook="03_multi_gpu_horovodrun",
    backend="gloo",
    observe="training",
    trials=lambda _: [
        Trial(hosts=UNEVEN_HOSTS, arguments=arguments()),
        Trial(hosts=ALONE, arguments=arguments()),
    ],
    steps=STEPS,
)
