"""Every exercise's check, on real ranks: what passes, what fails, and on which step."""

from pathlib import Path

import pytest
from verdicts import SECONDS_UNTIL_A_VERDICT, passed, solution, told, verdict_on

from hvdcourse import check
from hvdcourse.checks.manifest import EXERCISES, find_exercise
from hvdcourse.errors import BadInput
from hvdcourse.paths import PROJECT, SOLUTIONS

pytestmark = [pytest.mark.timeout(240)]

ANSWERS = sorted((PROJECT / "tests" / "answers").glob("*.py"))
EACH_EXERCISE = [exercise.name for exercise in EXERCISES]
EACH_STEP = [(exercise.name, step.number) for exercise in EXERCISES for step in exercise.steps]
# Half-way through, where steps stand on both sides. That each step is needed shows without it.
HALF_WAY = [("mpi_concepts", 4), ("ring_allreduce", 2), ("fashion_mnist", 5), ("lamb", 2)]

# One for each way of being observed.
OBSERVED = ["mpi_concepts", "ring_allreduce", "custom_loop"]


def steps_around(name: str, number: int) -> tuple[int, ...]:
    """Return the steps to judge for one step: it, those that need it, those without a run more."""
    exercise = find_exercise(name)
    trials = list(exercise.trials(Path("nowhere")))
    return tuple(
        step.number
        for step in exercise.steps
        if step.number == number
        or number in step.needs
        or all(not trial.steps for trial in trials if trial.judges(step.number))
    )


@pytest.mark.parametrize("name", EACH_EXERCISE)
def test_untouched_script_fails_every_step_and_says_where_it_stands_still(name):
    verdict = verdict_on(name, solution(name, until=0))
    assert passed(verdict) == []
    assert (verdict.failure is None) == find_exercise(name).ends_untouched
    if verdict.failure:
        assert "no rank computed or printed anything for" in told(verdict)
        for rank in (0, 1):
            assert f"Rank {rank} was waiting in allreduce, {name}.py line" in told(verdict)
        assert verdict.seconds < SECONDS_UNTIL_A_VERDICT


# The lessons check the other solutions: test_notebooks.py runs them.
@pytest.mark.measured
@pytest.mark.parametrize("name", OBSERVED)
def test_solution_passes_every_step(name):
    verdict = verdict_on(name, solution(name))
    assert passed(verdict) == [step.number for step in find_exercise(name).steps], told(verdict)
    assert verdict.passed


@pytest.mark.parametrize(("name", "number"), EACH_STEP)
def test_solution_without_a_step_fails_that_check_and_those_that_need_it(name, number):
    steps = steps_around(name, number)
    verdict = verdict_on(name, solution(name, without=number), steps)
    assert verdict.first_unmet.number == number
    assert not verdict.steps[steps.index(number)].passed
    assert verdict.first_unmet.expected
    assert verdict.first_unmet.seen
    if verdict.failure is None:
        needing = {step.number for step in find_exercise(name).steps if number in step.needs}
        unmet = {step.number for step in verdict.steps if not step.passed}
        assert unmet <= {number, *needing}, told(verdict)


@pytest.mark.parametrize(("name", "number"), HALF_WAY)
def test_after_a_step_that_and_the_earlier_ones_pass_and_no_later_one(name, number):
    steps = steps_around(name, number)
    verdict = verdict_on(name, solution(name, until=number), steps)
    assert passed(verdict) == [step for step in steps if step <= number]


def exercise_of(answer: Path) -> str:
    (name,) = (name for name in EACH_EXERCISE if answer.name.startswith(name))
    return name


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda path: path.stem)
def test_a_differently_written_right_answer_passes(answer):
    verdict = verdict_on(exercise_of(answer), answer.read_text())
    assert verdict.passed, told(verdict)


@pytest.mark.parametrize("name", EACH_EXERCISE)
def test_every_exercise_has_three_differently_written_right_answers(name):
    # A repair of one place has one.
    least = 1 if len(find_exercise(name).steps) == 1 else 3
    assert sum(exercise_of(answer) == name for answer in ANSWERS) >= least


def test_a_check_of_no_step_at_all_is_refused():
    said = "there is no step to check; mpi_concepts has steps 1 to 8"
    with pytest.raises(BadInput, match=said):
        check("mpi_concepts", [], folder=SOLUTIONS)


@pytest.mark.parametrize("name", EACH_EXERCISE)
def test_a_script_that_does_nothing_passes_nothing(name):
    assert passed(verdict_on(name, "\n")) == []


@pytest.mark.parametrize("name", OBSERVED)
@pytest.mark.parametrize("text", ["import os; os._exit(0)", "import sys; sys.exit()"])
def test_a_script_that_ends_at_once_passes_nothing(name, text):
    assert passed(verdict_on(name, text + "\n")) == []
