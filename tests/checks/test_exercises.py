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
# Steps that are undone together: each is judged by itself, and those that need another one are not
# undone with it. Where an exercise has one step, the untouched script is without it.
UNDONE = {
    "mpi_concepts": ((1, 3, 5, 7), (2, 4, 6, 8)),
    "ring_allreduce": ((1, 3), (2,), (4,)),
    "input_pipeline": ((1, 5), (3,), (2, 4)),
    "custom_loop": ((1, 3, 5), (2, 4)),
    "svhn": ((1, 3, 5), (2, 4, 6)),
    "fashion_mnist": ((1, 3, 6, 9), (2, 4, 8), (5, 7, 10)),
    "cifar": ((1, 3), (2, 4)),
    "lamb": ((1, 3, 5), (2, 4)),
    "distributed_optimizer": ((1, 2), (3,), (4,), (5,)),
    "timeline": ((1,), (2, 4), (3, 5)),
    "elastic": ((1,), (2, 4), (3, 5)),
}

# Steps without which others cannot be met: without a flat buffer there are no buckets.
NEEDED = {
    "ring_allreduce": {3: {2}, 4: {2}},
    "fashion_mnist": {7: {3, 4}},
    "lamb": {2: {1}},  # of zeros, any correction makes zeros
    "distributed_optimizer": {3: {2}, 4: {2, 3}, 5: {2, 3, 4}},
    "timeline": {2: {1}, 3: {1}, 4: {1}},
    "elastic": {2: {1}, 3: {1, 2}, 4: {1}, 5: {1}},
}
# They stand still until they are repaired.
STAND_STILL = {"lab_standstill", "lab_one_image_more"}

# One for each way of being observed.
OBSERVED = ["mpi_concepts", "ring_allreduce", "custom_loop"]


@pytest.mark.parametrize("name", EACH_EXERCISE)
def test_untouched_script_fails_every_step_and_says_where_it_stands_still(name):
    verdict = verdict_on(name, untouched(name))
    assert passed(verdict) == []
    assert bool(verdict.failure) == (name in STAND_STILL)
    if verdict.failure:
        assert "no rank computed or printed anything for" in told(verdict)
        for rank in (0, 1):
            assert f"Rank {rank} was waiting in allreduce, {name}.py line" in told(verdict)


# The lessons check the other solutions: test_notebooks.py runs them.
@pytest.mark.measured
@pytest.mark.parametrize("name", OBSERVED)
def test_solution_passes_every_step(name):
    verdict = verdict_on(name, solution(name))
    assert passed(verdict) == [step.number for step in find_exercise(name).steps], told(verdict)
    assert verdict.passed


@pytest.mark.parametrize(
    ("name", "undone"), [(name, undone) for name, groups in UNDONE.items() for undone in groups]
)
def test_a_solution_without_some_steps_fails_these_and_those_that_need_them(name, undone):
    verdict = verdict_on(name, solution(name, without=undone))
    unmet = {step.number: step for step in verdict.steps if not step.passed}
    assert set(undone) <= unmet.keys()
    assert all(step.expected and step.seen for step in unmet.values())
    if verdict.failure is None:
        needed = NEEDED.get(name, {})
        needing = {number for number, others in needed.items() if others & set(undone)}
        assert unmet.keys() <= {*undone, *needing}, told(verdict)


@pytest.mark.parametrize("name", EACH_EXERCISE)
def test_every_step_is_undone_once(name):
    steps = [step.number for step in find_exercise(name).steps]
    undone = sorted(number for group in UNDONE.get(name, ()) for number in group)
    assert undone == steps or steps == [1]


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
