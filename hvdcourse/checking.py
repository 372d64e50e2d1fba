"""Check an exercise: run the learner's script on real ranks and judge what it does."""

import os
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from hvdcourse.command_line import arguments_from
from hvdcourse.elastic_run import run_elastic
from hvdcourse.environment import OBSERVE_VARIABLE
from hvdcourse.evidence import ObservedRun, Unmet
from hvdcourse.exercises import SOURCE_CODE, Exercise, Step, find_exercise
from hvdcourse.gpus import enough_gpus
from hvdcourse.launch import BadInput, run
from hvdcourse.progress import remember
from hvdcourse.result import RunResult
from hvdcourse.trial import Trial
from hvdcourse.verdict import RUNS_TO_ITS_END, ExerciseVerdict, StepVerdict

# Milliseconds between two looks of Horovod's thread for work. A check's runs are short, most of
# their time goes into building graphs, and with Horovod's own 1 ms they took a tenth longer.
CYCLE_TIME = os.environ.get("HOROVOD_CYCLE_TIME", "3")


def check(
    name: str,
    step: int | Iterable[int] | None = None,
    *,
    folder: str | Path | None = None,
    hint: bool = False,
) -> ExerciseVerdict:
    """Run an exercise's script and return a verdict on one step, on several, or on all.

    Args:
        name: the exercise, such as ``"mpi_concepts"``.
        step: the step to judge, or several, such as ``range(1, 8)``; all of them without it.
        folder: where the script is; ``source_code/`` of the project without it.
        hint: show the hint beside a step that is not met yet.

    Raises:
        BadInput: no such exercise, step or script, no step at all, or a syntax error in the script.
    """
    exercise = find_exercise(name)
    numbers = [step] if isinstance(step, int | str) else step
    steps = list(exercise.steps if numbers is None else map(exercise.step, numbers))
    if not steps:
        raise BadInput(
            f"there is no step to check; {exercise.name} has steps 1 to {len(exercise.steps)}, and "
            "without a step all of them are checked"
        )
    folder = Path(folder) if folder is not None else SOURCE_CODE
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hvdcourse-check-") as scratch:
        runs, failures = observe_runs(exercise, steps, folder, Path(scratch))
        verdicts = [judge(one, runs, failures.get(one.number)) for one in steps]
    verdict = ExerciseVerdict(
        exercise=exercise.name,
        script=str(folder / f"{exercise.name}.py"),
        steps=verdicts,
        failure=next(iter(failures.values()), None),
        seconds=time.monotonic() - started,
        show_hints=hint,
    )
    if folder.resolve() != SOURCE_CODE:
        return verdict
    try:
        remember(verdict)
    except OSError as error:
        return replace(verdict, not_remembered=f"progress was not kept: {error}")
    return verdict


def observe_runs(
    exercise: Exercise, steps: list[Step], folder: Path, scratch: Path
) -> tuple[list[tuple[Trial, ObservedRun]], dict[int, str]]:
    """Run every trial that these steps need, less those whose steps have all failed before.

    Returns the trials that ended well with their observed runs, and by number of the step in words
    what went wrong in a run that it needs.
    """
    done: list[tuple[Trial, ObservedRun]] = []
    failures: dict[int, str] = {}
    for trial in exercise.trials(scratch):
        needing = [one.number for one in steps if trial.judges(one.number)]
        if not set(needing) - set(failures):
            continue
        result = start(exercise, trial, folder)
        if result.ok or trial.plan:
            earlier = [observed for _, observed in done]
            done.append((trial, ObservedRun(result, trial.arguments, earlier, trial.np)))
            continue
        ranks = "1 rank" if trial.np == 1 else f"{trial.np} ranks"
        said = f"On {ranks}{trial.about} the script did not end well.\n{result.explain()}"
        failures = dict.fromkeys(needing, said) | failures
    return done, failures


def start(exercise: Exercise, trial: Trial, folder: Path) -> RunResult:
    """Run the exercise's script as the trial wants it."""
    options = {
        "timeout": exercise.timeout,
        "standstill": exercise.standstill,
        "folder": folder,
        "quiet": True,
        "must_succeed": False,
        "arguments": arguments_from(trial.arguments),
    }
    script = f"{exercise.name}.py"
    if trial.plan:
        return run_elastic(script, trial.np, plan=trial.plan, **options)
    environment = {
        OBSERVE_VARIABLE: exercise.observe,
        "HOROVOD_CYCLE_TIME": CYCLE_TIME,
        **enough_gpus(trial.np),
        **exercise.environment,
        **trial.environment,
    }
    return run(script, trial.np, backend=exercise.backend, environment=environment, **options)


def judge(step: Step, runs: list[tuple[Trial, ObservedRun]], failure: str | None) -> StepVerdict:
    """Judge one step by what was observed. A run that did not end well never passes."""
    expected, seen = "", []
    if failure is not None:
        expected = RUNS_TO_ITS_END
        seen = failure.splitlines()
    concerned = [observed for trial, observed in runs if trial.judges(step.number)]
    try:
        for observed in concerned if failure is None else []:
            step.check(observed)
    except Unmet as unmet:
        expected, seen = unmet.expected, unmet.seen
        if len({one.np for one in concerned}) > 1:
            seen = [f"on {observed.np} ranks:", *seen]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        expected = "every rank reports values of the kind that the script's comments describe"
        seen = [f"the check could not read what was reported: {type(error).__name__}: {error}"]
    passed = not expected
    return StepVerdict(step.number, step.title, passed, expected, seen, step.hint)
