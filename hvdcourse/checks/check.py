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
        runs, failures = observe_runs(exercise, steps_to_judge, folder, Path(scratch), timeout)
        verdicts = [judge_step(step, runs, failures.get(step.number)) for step in steps_to_judge]
        seconds = time.monotonic() - started
    verdict = ExerciseVerdict(
        exercise=exercise.name,
        script=str(folder / f"{exercise.name}.py"),
        steps=verdicts,
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


def observe_runs(
    exercise: Exercise, steps: list[Step], folder: Path, scratch: Path, timeout: float
) -> tuple[list[tuple[Trial, ObservedRun]], dict[int, str]]:
    """Run every trial that these steps need, less those whose steps have all failed before.

    Returns the trials that ended well with their observed runs, and by number of the step in words
    what went wrong in a run that it needs.
    """
    deadline = time.monotonic() + timeout
    done: list[tuple[Trial, ObservedRun]] = []
    failures: dict[int, str] = {}
    for trial in exercise.trials(scratch):
        needing = [step.number for step in steps if trial.judges(step.number)]
        if not set(needing) - set(failures):
            continue
        # A run that is left no time at all is started, and ended, like any other.
        left = max(1.0, deadline - time.monotonic())
        longest = exercise.longest_run * timeout
        result = start(exercise, trial, folder, min(left, longest))
        if result.ok or trial.disturbed:
            observed = ObservedRun(
                result,
                trial.arguments,
                earlier=[run for _, run in done],
                hosts=trial.hosts,
                disturbed=trial.disturbed,
            )
            done.append((trial, observed))
            continue
        where = f"On {trial.ranks_in_words}{trial.about}"
        failure = f"{where} the script did not end well.\n{result.explain()}"
        if result.reason == "time limit" and left < longest and (done or failures):
            failure += (
                f"\nThe runs before it took {timeout - left:.0f} of the check's {timeout:g} s. "
                "Where the computer is busy, --timeout gives it more."
            )
        failures = dict.fromkeys(needing, failure) | failures
    return done, failures


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


def judge_step(
    step: Step, runs: list[tuple[Trial, ObservedRun]], failure: str | None
) -> StepVerdict:
    """Judge one step by what was observed. A run that did not end well never passes.

    Where other runs did end well and show what is wrong, that says more than the failure.
    """
    verdict = functools.partial(StepVerdict, step.number, step.title)
    concerned = [run for run in runs if run[0].judges(step.number)]
    for trial, observed in concerned:
        try:
            step.check(observed)
        except Unmet as unmet:
            lines = unmet.seen
            if len(concerned) > 1 or len(trial.hosts) > 1:
                lines = [f"on {trial.ranks_in_words}{trial.about.removesuffix(',')}:", *lines]
            unjudged = isinstance(unmet, NotJudged)
            return verdict(passed=False, expected=unmet.expected, seen=lines, run_failed=unjudged)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            expected = "every rank reports values of the kind that the script's comments describe"
            reports = ((rank.rank, rank.report_in_words()) for rank in observed.ranks)
            lines = [f"rank {rank}: reported {what or 'nothing'}" for rank, what in reports]
            return verdict(passed=False, expected=expected, seen=lines, run_failed=True)
    if failure is not None:
        expected = "the script runs to its end on every rank"
        return verdict(passed=False, expected=expected, seen=failure.splitlines(), run_failed=True)
    return verdict(passed=True, expected="", seen=[])
