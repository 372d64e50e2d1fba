"""What each step of ``svhn.py`` must make true, on 3 ranks, and on 1, where there may be no GPU."""

import random
from functools import partial
from pathlib import Path
from typing import Any

from hvdcourse.checks.evidence import ObservedRun
from hvdcourse.checks.exercise import ALONE, UNEVEN_HOSTS, Exercise, Step, Trial
from hvdcourse.checks.exercises import shares, training
from hvdcourse.rank.variables import TEST_IMAGES_VARIABLE

# 3 ranks share them as 8, 8 and 7.
TEST_IMAGES = 23


def arguments(out: Path) -> dict[str, Any]:
    """Return arguments for one run: shares that full batches would cut into unequally many steps.

    Every rank has a folder that no other rank sees. It draws its first weights without a seed:
    with one of its own, tf.data would shuffle apart on each rank, whatever seed it is given.
    """
    return {
        "images": random.choice(shares.COUNTS),
        "epochs": 2,
        "batch_size": shares.BATCH_SIZE,
        "out": str(out),
    }


def trials(folder: Path) -> list[Trial]:
    """Return a run with fewer test images, in shares that differ in length, and one on 1 rank."""
    several, alone = folder / "{rank}", folder / "alone"
    fewer = {TEST_IMAGES_VARIABLE: str(TEST_IMAGES)}
    return [
        Trial(hosts=UNEVEN_HOSTS, arguments=arguments(several), environment=fewer),
        Trial(hosts=ALONE, arguments=arguments(alone), environment=fewer, steps=(1, 4, 5)),
    ]


check_test = partial(shares.check_validation, metrics="test", count=TEST_IMAGES)


def check_one_voice_and_writer(run: ObservedRun) -> None:
    training.check_one_voice(run)
    training.check_one_writer(run, "out")


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
        title="Each epoch's images are shared out, in the same number of steps",
        check=shares.check_shuffled_shares,
    ),
    Step(number=5, title="Every rank has the metrics of the whole test set", check=check_test),
    Step(number=6, title="Only rank 0 prints and writes files", check=check_one_voice_and_writer),
)

EXERCISE = Exercise(
    name="svhn",
    notebook="03_multi_gpu_horovodrun",
    observe="training",
    trials=trials,
    steps=STEPS,
)
