"""The manifest: every exercise, in the order of the course."""

from hvdcourse.checks.exercise import Exercise
from hvdcourse.checks.exercises import (
    cifar,
    custom_loop,
    distributed_optimizer,
    elastic,
    fashion_mnist,
    input_pipeline,
    labs,
    lamb,
    mpi_concepts,
    ring_allreduce,
    svhn,
    timeline,
)
from hvdcourse.errors import BadInput

# The script of lesson 7: no exercise with steps, and judged by ``hvdcourse challenge``.
CHALLENGE = "artists_resnet"

EXERCISES: tuple[Exercise, ...] = (
    mpi_concepts.EXERCISE,
    ring_allreduce.EXERCISE,
    input_pipeline.EXERCISE,
    fashion_mnist.EXERCISE,
    custom_loop.EXERCISE,
    svhn.EXERCISE,
    *labs.EXERCISES,
    lamb.EXERCISE,
    cifar.EXERCISE,
    distributed_optimizer.EXERCISE,
    timeline.EXERCISE,
    elastic.EXERCISE,
)


def find_exercise(name: str) -> Exercise:
    """Return the exercise of this name, with or without ``.py``.

    Raises:
        BadInput: there is none; the message lists those that there are, or names the judge.
    """
    for exercise in EXERCISES:
        if exercise.name == str(name).removesuffix(".py"):
            return exercise
    if str(name).removesuffix(".py") == CHALLENGE:
        raise BadInput(f"{CHALLENGE}.py has no steps and no hints: hvdcourse challenge judges it")
    known = ", ".join(exercise.name for exercise in EXERCISES)
    raise BadInput(f"there is no exercise {name!r}; the exercises are {known}")
