"""Every exercise's check, on real ranks: what passes, what fails, and on which step."""

import functools
from pathlib import Path

import pytest
from watching import watched

from hvdcourse import check
from hvdcourse.exercises import EXERCISES, SOLUTIONS, find_exercise
from hvdcourse.generate import parse, render
from hvdcourse.verdict import ExerciseVerdict

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("unmeasured")]

ANSWERS = sorted(Path(__file__).with_name("answers").glob("*.py"))
EACH_EXERCISE = [exercise.name for exercise in EXERCISES]
EACH_STEP = [(one.name, step.number) for one in EXERCISES for step in one.steps]
# Half-way through, where steps stand on both sides. That each step is needed shows without it.
HALF_WAY = [("mpi_concepts", 4), ("ring_allreduce", 2), ("fashion_mnist", 5), ("lamb", 2)]
# Long enough for a busy machine, and short of what a learner would call a hang.
SECONDS_UNTIL_A_VERDICT = 50


@functools.cache
def verdict_on(name: str, text: str, steps: tuple[int, ...] | None = None) -> ExerciseVerdict:
    """Check this text as the learner's script; equal texts are checked once."""
    if steps == tuple(step.number for step in find_exercise(name).steps):
        return verdict_on(name, text)
    with watched() as temporary:
        folder = temporary / "source"
        folder.mkdir()
        (folder / f"{name}.py").write_text(text)
        return check(name, steps, folder=folder)


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


def solution(name: str, *, without: int | None = None, until: int | None = None) -> str:
    """Return the solution, with one step undone, or done only up to a step."""
    parts = parse((SOLUTIONS / f"{name}.py").read_text(), name)
    numbers = {step.number for step in find_exercise(name).steps}
    return render(parts, {n for n in numbers if n != without and (until is None or n <= until)})


def changed(name: str, *changes: tuple[str, str]) -> str:
    """Return the solution with each first text, which stands there once, replaced."""
    text = solution(name)
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def passed(verdict: ExerciseVerdict) -> list[int]:
    return [step.number for step in verdict.steps if step.passed]


def told(verdict: ExerciseVerdict) -> str:
    """Return all that the learner is told of the steps that are not met."""
    return "\n".join(text for _, text in verdict.rows() if text)


@pytest.mark.parametrize("name", EACH_EXERCISE)
def test_untouched_script_fails_every_step(name):
    verdict = verdict_on(name, solution(name, until=0))
    assert (verdict.failure is None) == find_exercise(name).ends_untouched
    assert passed(verdict) == []


@pytest.mark.parametrize("name", [one.name for one in EXERCISES if not one.ends_untouched])
def test_untouched_script_that_stands_still_says_where_each_rank_waits(name):
    verdict = verdict_on(name, solution(name, until=0))
    assert "no rank computed or printed anything for" in told(verdict)
    for rank in (0, 1):
        assert f"Rank {rank} was waiting in allreduce, {name}.py line" in told(verdict)
    assert verdict.seconds < SECONDS_UNTIL_A_VERDICT


@pytest.mark.parametrize("name", EACH_EXERCISE)
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
    wanted = 1 if len(find_exercise(name).steps) == 1 else 3
    assert sum(exercise_of(answer) == name for answer in ANSWERS) >= wanted


# Mistakes of different steps share a run: each step is judged by itself.
SCORES = '    report("all_scores", all_scores)\n'
SUMMARY = 'report("summary", arguments.summary.read_text() if arguments.summary.exists() else "")'
MISTAKES = {
    "alike": (
        ("default_rng()", "default_rng(5)"),
        ("direction = hvd.broadcast(direction, root_rank=0).numpy()", "pass"),
        (
            "mean = total / count",
            "mean = hvd.allreduce(images[rows].mean(axis=0), op=hvd.Average).numpy()",
        ),
        (SCORES, ""),
        (SUMMARY, 'report("summary", 7)'),
    ),
    "alone": (
        ("    mean = total / count", "    mean = images.mean(axis=0)"),
        ('total = hvd.allreduce(images[rows].sum(axis=0), op=hvd.Sum, name="total").numpy()', ""),
        ('count = hvd.allreduce(np.float64(len(rows)), op=hvd.Sum, name="count").numpy()', ""),
        (SCORES, f"    if rank == 0:\n    {SCORES}"),
        ('report("my_brightness", my_brightness)', 'report("my_brightness", "much")'),
        ("        write_summary(arguments", "        (arguments"),
    ),
    "too early": (('    hvd.allreduce(np.float32(0), name="barrier")\n', ""),),
}


def seen(mistakes: str, number: int) -> str:
    """Return what the learner who made these mistakes is told of a step; "" where it passes."""
    verdict = verdict_on("mpi_concepts", changed("mpi_concepts", *MISTAKES[mistakes]))
    assert verdict.failure is None, verdict.failure
    step = verdict.steps[number - 1]
    return "" if step.passed else "\n".join([step.expected, *step.seen])


def test_a_seed_that_makes_all_ranks_draw_alike_is_no_broadcast():
    assert "every rank draws a direction of its own" in seen("alike", 3)


def test_a_mean_of_means_is_no_mean():
    expected, *by_rank = seen("alike", 4).splitlines()
    assert "every rank gets the mean over all ranks' images" in expected
    assert [line[:7] for line in by_rank] == ["rank 0:", "rank 1:"]


def test_the_right_mean_without_talking_to_the_other_rank_is_not_enough():
    assert "without a collective" in seen("alone", 4)


def test_a_missing_report_is_named_with_the_rank():
    assert "rank 0 reported no 'all_scores'" in seen("alike", 5)
    assert "rank 1 reported no 'all_scores'" in seen("alone", 5)


def test_a_report_of_another_kind_fails_its_step_with_a_reason():
    assert "the check could not read what was reported" in seen("alike", 8)
    assert "the check could not read what was reported" in seen("alone", 7)


def test_a_summary_that_nobody_writes_fails():
    assert "in the end it has 0" in seen("alone", 8)


def test_without_a_barrier_a_rank_goes_on_too_early():
    assert "rank 1: read 0 lines from the summary" in seen("too early", 8)


def test_mistakes_in_some_steps_fail_no_other_steps():
    assert not any(seen("alike", number) for number in (1, 2, 6, 7))
    assert not any(seen("alone", number) for number in (1, 2, 3, 6))
    assert not any(seen("too early", number) for number in range(1, 8))


def test_a_barrier_that_one_rank_never_reaches_ends_in_a_verdict():
    barrier = 'hvd.allreduce(np.float32(0), name="barrier")'
    text = changed("mpi_concepts", (f"    {barrier}", f"    if rank == 0:\n        {barrier}"))
    # Rank 1 must not end, or else Horovod ends rank 0, too.
    text = text.replace('if __name__ == "__main__":\n    main()', STAYS)
    verdict = verdict_on("mpi_concepts", text)
    assert passed(verdict) == []
    assert "no rank computed or printed anything for" in told(verdict)
    assert "Rank 0 was waiting in allreduce, mpi_concepts.py line" in told(verdict)
    assert verdict.seconds < SECONDS_UNTIL_A_VERDICT


STAYS = 'if __name__ == "__main__":\n    main()\n    time.sleep(600)'


def test_the_same_barrier_where_the_other_rank_ends_never_passes_either():
    barrier = 'hvd.allreduce(np.float32(0), name="barrier")'
    text = changed("mpi_concepts", (f"    {barrier}", f"    if rank == 0:\n        {barrier}"))
    verdict = verdict_on("mpi_concepts", text)
    assert passed(verdict) == []
    assert verdict.seconds < SECONDS_UNTIL_A_VERDICT


@pytest.mark.parametrize("end", ["raise RuntimeError('late')", "sys.exit(1)", "os.abort()"])
def test_a_crash_after_all_reports_never_passes(end):
    crash = f"    main()\n    import os, sys\n    {end}\n"
    verdict = verdict_on("ring_allreduce", changed("ring_allreduce", ("    main()\n", crash)))
    assert verdict.failure
    assert passed(verdict) == []


def test_a_rank_killed_after_all_reports_never_passes():
    killed = "    main()\n    import os\n    os.kill(os.getpid(), 9 if hvd.rank() else 0)\n"
    verdict = verdict_on("mpi_concepts", changed("mpi_concepts", ("    main()\n", killed)))
    assert passed(verdict) == []
    assert "Rank 1 failed first: was killed by SIGKILL" in told(verdict)


@pytest.mark.parametrize("name", EACH_EXERCISE)
def test_a_script_that_does_nothing_passes_nothing(name):
    assert passed(verdict_on(name, "\n")) == []


# One for each way of being observed.
@pytest.mark.parametrize("name", ["mpi_concepts", "ring_allreduce", "custom_loop"])
@pytest.mark.parametrize("text", ["import os; os._exit(0)", "import sys; sys.exit()"])
def test_a_script_that_ends_at_once_passes_nothing(name, text):
    assert passed(verdict_on(name, text + "\n")) == []


def test_send_before_receive_deadlocks_and_the_verdict_names_send():
    waiting = """communicator.Send(outgoing, dest=after)
    communicator.Recv(incoming, source=before)"""
    exchange = "communicator.Sendrecv(outgoing, dest=after, recvbuf=incoming, source=before)"
    verdict = verdict_on("ring_allreduce", changed("ring_allreduce", (exchange, waiting)))
    assert passed(verdict) == []
    for rank in (0, 1):
        assert f"Rank {rank} was waiting in Send, ring_allreduce.py line" in told(verdict)
    assert verdict.seconds < SECONDS_UNTIL_A_VERDICT


def test_an_allreduce_of_mpis_own_is_no_ring():
    name = "ring_allreduce"
    text = changed(
        name,
        ("scatter_reduce(vector, bounds, communicator)\n    report", f"{MPIS_OWN}\n    report"),
        ("allgather(vector, bounds, communicator)\n    report", "report"),
    )
    verdict = verdict_on(name, text)
    assert verdict.first_unmet.number == 3
    assert "called 1 collectives" in told(verdict)


MPIS_OWN = "communicator.Allreduce(MPI.IN_PLACE, vector)"


def test_whole_vectors_sent_round_the_ring_are_too_many_bytes():
    whole = """total, travels = vector.copy(), vector.copy()
    for _ in range(communicator.size - 1):
        incoming = np.empty_like(travels)
        exchange(travels, incoming, communicator)
        total += incoming
        travels = incoming
    vector[:] = total"""
    call = "scatter_reduce(vector, bounds, communicator)\n    report"
    text = changed("ring_allreduce", (call, f"{whole}\n    report"))
    verdict = verdict_on("ring_allreduce", text)
    assert verdict.first_unmet.number == 3
    assert "each rank sends at most" in told(verdict)


def test_a_ring_that_works_for_two_ranks_alone_fails():
    text = changed("ring_allreduce", ("after, before = (rank + 1) % size, (rank - 1) % size", PAIR))
    verdict = verdict_on("ring_allreduce", text)
    assert not verdict.passed


PAIR = "after, before = rank ^ 1, rank ^ 1"


def test_a_repair_that_drops_the_last_image_fails():
    name = "lab_uneven_shards"
    call = "return batches(count, hvd.rank(), hvd.size(), batch_size)"
    fewer = call.replace("(count,", "(count - 1,")
    assert " images were seen, 0 more than once" in told(
        verdict_on(name, changed(name, (call, fewer)))
    )


def test_a_repair_that_leaves_out_the_collective_fails():
    name = "lab_collective_on_rank_0"
    call = 'hvd.allreduce(np.mean(own), op=hvd.Average, name="loss").numpy()'
    verdict = verdict_on(name, changed(name, (call, "np.mean(own)")))
    assert verdict.failure is None
    assert "every rank has the mean of all ranks' losses" in told(verdict)


def test_a_sum_of_losses_is_no_mean():
    text = changed("custom_loop", ("op=hvd.Average", "op=hvd.Sum"))
    assert passed(verdict_on("custom_loop", text)) == [1, 2, 3, 4]


def test_accuracies_of_one_share_are_not_those_of_the_whole_test_set():
    text = changed("svhn", ("test_loss, accuracy = np.array(sums) / len(data.test_images)", OWN))
    verdict = verdict_on("svhn", text)
    assert passed(verdict) == [1, 2, 3, 4, 6]
    assert "every rank has the accuracy of the whole test set" in told(verdict)


OWN = "test_loss, accuracy = means"
