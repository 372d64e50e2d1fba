"""Check an exercise: run the learner's script on real ranks and judge what it does."""

import functools
import os
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hvdcourse.checks.evidence import NotJudged, ObservedRun, Unmet
from hvdcourse.checks.exercise import Exercise, Step, Trial
from hvdcourse.checks.manifest import find_exercise
from hvdcourse.checks.progress import remember
from hvdcourse.checks.queue import QUEUE_VARIABLE, turn
from hvdcourse.checks.verdict import ExerciseVerdict, StepVerdict
from hvdcourse.errors import BadInput, checked_limit
from hvdcourse.launch.command_line import arguments_from
from hvdcourse.launch.elastic import run_elastic
from hvdcourse.launch.result import RunResult
from hvdcourse.launch.run import find_script, run_quickly
from hvdcourse.paths import SOURCE_CODE
from hvdcourse.rank.variables import OBSERVE_VARIABLE

# Milliseconds between two looks of Horovod's thread for work. A check's runs are short, most of
# their time goes into building graphs, and with Horovod's own 1 ms they took a tenth longer.
CYCLE_TIME = os.environ.get("HOROVOD_CYCLE_TIME", "3")
# Whatever a script does, its verdict is there within a minute. Where checks queue, many share the
# machine, and what they run in notebooks slows a check down.
SECONDS = 110.0 if os.environ.get(QUEUE_VARIABLE) else 55.0


def check(
    name: str,
    step: int | Iterable[int] | None = None,
    *,
    folder: str | Path | None = None,
    hint: int = 0,
    timeout: float = SECONDS,
) -> ExerciseVerdict:
    """Run an exercise's script and return a verdict on one step, on several, or on all.

    Where HVDCOURSE_QUEUE names a folder, it waits for its turn before.

    Args:
        name: the exercise, such as ``"mpi_concepts"``.
        step: the step to judge, or several, such as ``range(1, 8)``; all of them without it.
        folder: where the script is; ``source_code/`` of the project without it.
        hint: how many of the three hints to show for each step that is not met yet; True is 1. A
            notebook shows all three, folded.
        timeout: seconds for all of its runs together; then the verdict says where the ranks were.

    Raises:
        BadInput: no such exercise, step or script, no step at all, a timeout that is no number
            above 0, or a syntax error in the script.
    """
    exercise = find_exercise(name)
    numbers = [step] if isinstance(step, int | str) else step
    steps_to_judge = list(exercise.steps if numbers is None else map(exercise.step, numbers))
    if not steps_to_judge:
        raise BadInput(
            f"there is no step to check; {exercise.name} has steps 1 to {len(exercise.steps)}, and "
            "without a step all of them are checked"
        )
    folder = Path(folder) if folder is not None else SOURCE_CODE
    timeout = checked_limit(timeout, "timeout")
    # A script that cannot run need not wait for its turn.
    find_script(f"{exercise.name}.py", folder)
    with turn(), tempfile.TemporaryDirectory(prefix="hvdcourse-check-") as scratch:
        started = time.monotonic()
        trials = list(exercise.trials(Path(scratch)))
        unmet, failures = judge_runs(exercise, trials, steps_to_judge, folder, timeout)
        seconds = time.monotonic() - started
    verdict = ExerciseVerdict(
        exercise=exercise.name,
        script=str(folder / f"{exercise.name}.py"),
        steps=[
            unmet.get(step.number) or judge_without_unmet(step, failures.get(step.number))
            for step in steps_to_judge
        ],
        failure=next(iter(failures.values()), None),
        seconds=seconds,
        hint_level=int(hint),
    )
    if folder.resolve() != SOURCE_CODE:
        return verdict
    try:
        remember(verdict)
    except OSError as error:
        return replace(verdict, not_remembered=f"progress was not kept: {error}")
    return verdict


def judge_runs(
    exercise: Exercise, trials: list[Trial], steps: list[Step], folder: Path, timeout: float
) -> tuple[dict[int, StepVerdict], dict[int, str]]:
    """Run the trials, less those that could tell nothing new, and judge the steps by each.

    Returns, by number of the step, the verdicts on those that a run has shown not to be met, and in
    words what went wrong in a run that the step needs. A run that did not end well never passes;
    where another did end well and shows what is wrong, that says more than the failure.
    """
    deadline = time.monotonic() + timeout
    done: list[ObservedRun] = []
    unmet: dict[int, StepVerdict] = {}
    failures: dict[int, str] = {}
    for trial in trials:
        needing = [step for step in steps if trial.judges(step.number)]
        if all(step.number in unmet or step.number in failures for step in needing):
            continue
        # A run that is left no time at all is started, and ended, like any other.
        left = max(1.0, deadline - time.monotonic())
        longest = exercise.longest_run * timeout
        result = start(exercise, trial, folder, min(left, longest))
        if result.ok or trial.disturbed:
            observed = ObservedRun(
                result,
                trial.arguments,
                earlier=done,
                hosts=trial.hosts,
                disturbed=trial.disturbed,
            )
            done.append(observed)
            unknown = [step for step in needing if step.number not in unmet]
            unmet |= unmet_in(observed, unknown, trial, trials)
            continue
        where = f"On {trial.ranks_in_words}{trial.about}"
        failure = f"{where} the script did not finish.\n{result.explain()}"
        if result.reason == "time limit" and left < longest and (done or failures):
            failure += (
                f"\nThe runs before it took {timeout - left:.0f} of the check's {timeout:g} s. "
                "Where the computer is busy, --timeout gives it more."
            )
        failures = {step.number: failure for step in needing} | failures
    return unmet, failures


def unmet_in(
    observed: ObservedRun, steps: list[Step], trial: Trial, trials: list[Trial]
) -> dict[int, StepVerdict]:
    """Return, by number, the verdicts on those of these steps that the trial's run does not meet.

    They name the run's ranks where the step has more runs than this, or more hosts than one.
    """
    verdicts = {}
    for step in steps:
        several_runs = sum(other.judges(step.number) for other in trials) > 1
        named = several_runs or len(trial.hosts) > 1
        where = [f"on {trial.ranks_in_words}{trial.about.removesuffix(',')}:"] if named else []
        if (verdict := judge_step(step, observed, where)) is not None:
            verdicts[step.number] = verdict
    return verdicts


def start(exercise: Exercise, trial: Trial, folder: Path, timeout: float) -> RunResult:
    """Run the exercise's script as the trial wants it, for so many seconds at most."""
    script = f"{exercise.name}.py"
    settings: dict[str, Any] = {
        "arguments": arguments_from(trial.arguments),
        "folder": folder,
        "timeout": timeout,
        "standstill": exercise.standstill,
        "quiet": True,
        "must_succeed": False,
    }
    if trial.plan:
        return run_elastic(script, trial.np, plan=trial.plan, **settings)
    return run_quickly(
        script,
        trial.np,
        hosts=trial.hosts,
        backend=exercise.backend,
        environment={
            OBSERVE_VARIABLE: exercise.observe,
            "HOROVOD_CYCLE_TIME": CYCLE_TIME,
            **exercise.environment,
            **trial.environment,
        },
        **settings,
    )


def judge_step(step: Step, observed: ObservedRun, where: list[str]) -> StepVerdict | None:
    """Return the verdict on a step that is not met in this run, or None; ``where`` heads it."""
    verdict = functools.partial(StepVerdict, step.number, step.title, passed=False)
    try:
        step.check(observed)
    except Unmet as unmet:
        seen = [*where, *unmet.seen]
        return verdict(expected=unmet.expected, seen=seen, run_failed=isinstance(unmet, NotJudged))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        expected = "every rank reports values of the kind that the script's comments describe"
        reports = ((rank.rank, rank.report_in_words()) for rank in observed.ranks)
        lines = [f"rank {rank}: reported {what or 'nothing'}" for rank, what in reports]
        return verdict(expected=expected, seen=lines, run_failed=True)
    return None


def judge_without_unmet(step: Step, failure: str | None) -> StepVerdict:
    """Return the verdict on a step that no run has shown not to be met."""
    verdict = functools.partial(StepVerdict, step.number, step.title)
    if failure is not None:
        expected = "the script runs to its end on every rank"
        return verdict(passed=False, expected=expected, seen=failure.splitlines(), run_failed=True)
    return verdict(passed=True, expected="", seen=[])
