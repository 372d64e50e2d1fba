"""Mistakes that learners make: each fails its own step, with words that help."""

import pytest
from verdicts import SECONDS_UNTIL_A_VERDICT, changed, passed, told, verdict_on

pytestmark = [pytest.mark.timeout(240)]

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
