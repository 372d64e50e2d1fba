"""Every exercise's check, on real ranks: what passes, what fails, and on which step."""

from pathlib import Path

import pytest
from verdicts import passed, solution, told, untouched, verdict_on

from hvdcourse import check
from hvdcourse.checks.manifest import EXERCISES, find_exercise
from hvdcourse.errors import BadInput
from hvdcourse.paths import PROJECT, SOLUTIONS

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(240)]

ANSWERS = sorted((PROJECT / "tests" / "answers").glob("*.py"))
EACH_EXERCISE = [exercise.name for exercise in EXERCISES]
# Of several steps. The last round of mistakes in elastic is one whose first half alone is met.
HALF_DONE = [name for name in EACH_EXERCISE if find_exercise(name).steps[1:] and name != "elastic"]
# They stand still until they are repaired.
STAND_STILL = {"lab_standstill", "lab_one_image_more"}

# One for each way of being observed, with the answer that measures how much of that is run.
OBSERVED = {
    "mpi_concepts": "mpi_concepts_by_gathering",
    "ring_allreduce": "ring_allreduce_odd_even",
    "custom_loop": "custom_loop_by_hand",
}


@pytest.mark.parametrize("name", EACH_EXERCISE)
def test_untouched_script_fails_every_step_and_says_where_it_stands_still(name):
    verdict = verdict_on(name, untouched(name))
    assert passed(verdict) == []
    assert bool(verdict.failure) == (name in STAND_STILL)
    if verdict.failure:
        assert "no rank computed or printed anything for" in told(verdict)
        for rank in (0, 1):
            assert f"Rank {rank} was waiting in allreduce, {name}.py line" in told(verdict)


@pytest.mark.parametrize("name", HALF_DONE)
def test_the_first_half_of_the_steps_is_met_before_the_others_are_done(name):
    numbers = [step.number for step in find_exercise(name).steps]
    done, undone = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
    verdict = verdict_on(name, solution(name, without=tuple(undone)))
    assert passed(verdict) == done, told(verdict)
    assert all(step.expected and step.seen for step in verdict.steps if not step.passed)


def exercise_of(answer: Path) -> str:
    (name,) = (name for name in EACH_EXERCISE if answer.name.startswith(name))
    return name


# Only step 3 of elastic needs the run in which nobody is killed; elastic_of_objects has it.
STEPS_OF = dict.fromkeys(("elastic_called_by_name", "elastic_with_reset_callbacks"), (1, 2, 4, 5))


def measured(answer: Path) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.measured,) if answer.stem in OBSERVED.values() else ()


# The lessons check the solutions: test_notebooks.py runs them.
@pytest.mark.parametrize(
    "answer", [pytest.param(path, marks=measured(path), id=path.stem) for path in ANSWERS]
)
def test_a_differently_written_right_answer_passes(answer):
    verdict = verdict_on(exercise_of(answer), answer.read_text(), STEPS_OF.get(answer.stem))
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
def test_a_script_that_ends_at_once_passes_nothing(name):
    assert passed(verdict_on(name, "import os; os._exit(0)\n")) == []
