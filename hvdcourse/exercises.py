"""The manifest: every exercise, its steps, their hints and their checks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from hvdcourse.checks import (
    cifar,
    custom_loop,
    elastic,
    fashion_mnist,
    input_pipeline,
    labs,
    lamb,
    mpi_concepts,
    ring_allreduce,
    svhn,
)
from hvdcourse.evidence import ObservedRun
from hvdcourse.launch import BadInput
from hvdcourse.trial import Trial

PROJECT = Path(__file__).resolve().parent.parent
SOURCE_CODE = PROJECT / "source_code"
SOLUTIONS = PROJECT / "solutions"
# The script of lesson 7: no exercise with steps, and judged by ``hvdcourse challenge``.
CHALLENGE = "artists_resnet"


@dataclass(frozen=True)
class Step:
    """One step of an exercise. Raises ValueError without a title, a hint or a check.

    ``needs`` are other steps without which this one cannot be met.
    """

    number: int
    title: str
    hint: str
    check: Callable[[ObservedRun], None]
    needs: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not (self.title.strip() and self.hint.strip() and callable(self.check)):
            raise ValueError(
                f"step {self.number} ({self.title!r}) needs a title, a hint and a check"
            )


@dataclass(frozen=True)
class Exercise:
    """A script with steps. ``timeout`` and ``standstill`` are seconds for each run of a check.

    ``observe`` names what to record of the ranks' communication; empty for nothing.
    ``trials`` gets a folder for the files that the runs of one check write. ``ends_untouched`` is
    False for a script that stands still on purpose until it is repaired.
    """

    name: str
    notebook: str
    backend: str
    observe: str
    trials: Callable[[Path], Iterable[Trial]]
    steps: tuple[Step, ...]
    timeout: float = 60
    standstill: float = 8
    environment: dict[str, str] = field(default_factory=dict)
    ends_untouched: bool = True

    def __post_init__(self) -> None:
        if [step.number for step in self.steps] != list(range(1, len(self.steps) + 1)):
            raise ValueError(f"the steps of {self.name} must be numbered 1, 2, 3, …")

    def step(self, number: int | str) -> Step:
        """Return one step. Raises BadInput where the exercise has no such step."""
        for step in self.steps:
            if str(step.number) == str(number):
                return step
        raise BadInput(f"{self.name} has steps 1 to {len(self.steps)}; there is no step {number!r}")


EXERCISES = (
    Exercise(
        name="mpi_concepts",
        notebook="01_mpi_concepts",
        backend="gloo",
        observe="horovod",
        trials=lambda folder: [Trial(2, mpi_concepts.arguments(folder))],
        steps=tuple(Step(*row) for row in mpi_concepts.STEPS),
    ),
    Exercise(
        name="ring_allreduce",
        notebook="01_mpi_concepts",
        backend="mpi",
        observe="mpi4py",
        trials=lambda _: [Trial(np, ring_allreduce.arguments()) for np in (2, 3, 5)],
        steps=tuple(Step(*row) for row in ring_allreduce.STEPS),
        timeout=12,
    ),
    Exercise(
        name="input_pipeline",
        notebook="02_single_gpu_baseline",
        backend="gloo",
        observe="",
        trials=lambda _: [Trial(1, input_pipeline.arguments())],
        steps=tuple(Step(*row) for row in input_pipeline.STEPS),
        # With one heap for all threads, what is no longer used can go back to the system.
        environment={"MALLOC_ARENA_MAX": "1"},
    ),
    Exercise(
        name="fashion_mnist",
        notebook="03_multi_gpu_horovodrun",
        backend="gloo",
        observe="training",
        trials=fashion_mnist.trials,
        steps=tuple(Step(*row) for row in fashion_mnist.STEPS),
        timeout=120,
    ),
    Exercise(
        name="custom_loop",
        notebook="03_multi_gpu_horovodrun",
        backend="gloo",
        observe="training",
        trials=lambda _: [Trial(2, custom_loop.arguments())],
        steps=tuple(Step(*row) for row in custom_loop.STEPS),
    ),
    Exercise(
        name="svhn",
        notebook="03_multi_gpu_horovodrun",
        backend="gloo",
        observe="training",
        trials=lambda folder: [Trial(2, svhn.arguments(folder))],
        steps=tuple(Step(*row) for row in svhn.STEPS),
    ),
    *(
        Exercise(
            name=name,
            notebook="03_multi_gpu_horovodrun",
            backend="gloo",
            observe="training",
            trials=lambda _, arguments=arguments: [Trial(2, arguments())],
            steps=(Step(1, title, hint, check),),
            standstill=labs.STANDSTILL_SECONDS,
            ends_untouched=ends,
        )
        for name, arguments, ends, title, hint, check in labs.LABS
    ),
    Exercise(
        name="lamb",
        notebook="04_convergence",
        backend="gloo",
        observe="",
        trials=lambda _: [Trial(2, lamb.arguments())],
        steps=tuple(Step(*row) for row in lamb.STEPS),
        timeout=120,
    ),
    Exercise(
        name="cifar",
        notebook="04_convergence",
        backend="gloo",
        observe="training",
        trials=lambda _: cifar.trials(),
        steps=tuple(Step(*row) for row in cifar.STEPS),
        timeout=120,
    ),
    Exercise(
        name="elastic",
        notebook="06_beyond_one_machine",
        backend="gloo",
        observe="",
        trials=lambda _: elastic.trials(),
        steps=tuple(Step(*row) for row in elastic.STEPS),
        timeout=120,
        standstill=30,
    ),
)


def find_exercise(name: str) -> Exercise:
    """Return the exercise of this name, with or without ``.py``.

    Raises:
        BadInput: there is none; the message lists those that there are.
    """
    for exercise in EXERCISES:
        if exercise.name == str(name).removesuffix(".py"):
            return exercise
    known = ", ".join(exercise.name for exercise in EXERCISES)
    raise BadInput(f"there is no exercise {name!r}; the exercises are {known}")
