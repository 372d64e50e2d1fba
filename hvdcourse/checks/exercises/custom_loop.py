"""What each step of ``custom_loop.py`` must make true, on 3 ranks and on 1."""

import random
from typing import Any

from hvdcourse.checks.exercise import ALONE, UNEVEN_HOSTS, Exercise, Step, Trial
from hvdcourse.checks.exercises import shares, training


def arguments() -> dict[str, Any]:
    """Return arguments for one run: few images, and first weights that differ by rank."""
    return {
        "images": random.choice(shares.COUNTS),
        "epochs": 2,
        "batch_size": shares.BATCH_SIZE,
        "learning_rate": 0.02,
        "weights_seed": f"{random.randrange(1000)}{{rank}}",
    }


STEPS = (
    Step(number=1, title="Every process knows its place, and its GPU", check=training.check_place),
    Step(
        number=2,
        title="Every rank applies the mean of all ranks' gradients",
        check=training.check_mean_gradient,
    ),
    Step(
        number=3,
        title="All ranks go on with rank 0's weights",
        check=training.check_broadcast_start,
    ),
    Step(
        number=4,
        title="Each epoch's images are shared out among the ranks",
        check=shares.check_shuffled_shares,
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
