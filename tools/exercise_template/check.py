"""What each step of ``new_exercise.py`` must make true."""

import random

import numpy as np

from hvdcourse.checks.evidence import ObservedRun
from hvdcourse.checks.exercise import ALONE, UNEVEN_HOSTS, Exercise, Step, Trial
from hvdcourse.checks.exercises.collective_results import (
    close,
    demand_by_collective,
    took_part,
    which,
)


def check_mean(run: ObservedRun) -> None:
    own, means = run.numbers("own"), run.numbers("mean")
    expected = np.mean(own, axis=0)
    mistakes = {"the sum of the ranks' vectors, not divided by their number": np.sum(own, axis=0)}
    demand_by_collective(
        "every rank has the mean of all ranks' vectors, by a collective",
        [close(mean, expected) for mean in means],
        took_part(run, "own", "mean"),
        [
            "has " + which(mean, expected, {"only its own vector": of_rank, **mistakes})
            for mean, of_rank in zip(means, own, strict=True)
        ],
    )


EXERCISE = Exercise(
    name="new_exercise",
    notebook="its_lesson",
    observe="horovod",
    trials=lambda _: [
        Trial(hosts=hosts, arguments={"numbers": random.randrange(5, 20)})
        for hosts in (UNEVEN_HOSTS, ALONE)
    ],
    steps=(
        Step(number=1, title="Every rank has the mean of all ranks' vectors", check=check_mean),
    ),
)
