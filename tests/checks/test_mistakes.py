"""Mistakes that learners make: each fails its own step, with words that help."""

from importlib import import_module

import pytest
from mistakes import labs
from verdicts import changed, passed, told, verdict_on

from hvdcourse.checks.manifest import EXERCISES
from hvdcourse.paths import PROJECT

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(240)]

FILES = sorted((PROJECT / "tests" / "mistakes").glob("*.py"))
# The labs share a file; what a round is, is told in another.
NAMES = [path.stem for path in FILES if path.stem not in ("labs", "round")]
ROUNDS = {name: import_module(f"mistakes.{name}").ROUNDS for name in NAMES} | labs.ROUNDS


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for name, rounds in ROUNDS.items() for number in range(len(rounds))],
)
def test_each_mistake_fails_its_own_step_with_words_that_name_it(name, number, record_property):
    made = ROUNDS[name][number]
    changes = [change for mistake in made.mistakes for change in mistake.changes]
    verdict = verdict_on(name, changed(name, *changes), made.steps)
    judged = {step.number: step for step in verdict.steps}
    assert bool(verdict.failure) == made.crashes, verdict.failure
    for mistake in made.mistakes:
        step = judged[mistake.step]
        assert not step.passed, mistake.name
        record_property(f"{name}, step {mistake.step}: {mistake.name}", step.told)
        words = "\n".join([step.expected, *step.seen])
        for said in mistake.said:
            assert said in words, f"{mistake.name}: {words}"
        # What was expected is the same for all mistakes of a step.
        assert any(said in "\n".join(step.seen) for said in mistake.said), mistake.name
    failed = {step.number for step in verdict.steps if not step.passed}
    assert made.crashes or failed <= {mistake.step for mistake in made.mistakes} | set(
        made.spoiled
    ), told(verdict)


def test_every_exercise_has_mistakes():
    assert {exercise.name for exercise in EXERCISES} == ROUNDS.keys()


def test_a_barrier_that_one_rank_never_reaches_never_passes():
    barrier = 'hvd.allreduce(np.float32(0), name="barrier")'
    text = changed("mpi_concepts", (f"    {barrier}", f"    if rank == 0:\n        {barrier}"))
    verdict = verdict_on("mpi_concepts", text)
    assert passed(verdict) == []


def test_a_crash_after_all_reports_never_passes():
    crash = "    main()\n    raise RuntimeError('late')\n"
    verdict = verdict_on("ring_allreduce", changed("ring_allreduce", ("    main()\n", crash)))
    assert verdict.failure
    assert passed(verdict) == []


def test_a_rank_killed_after_all_reports_never_passes():
    killed = "    main()\n    import os\n    os.kill(os.getpid(), 9 if hvd.rank() == 1 else 0)\n"
    verdict = verdict_on("mpi_concepts", changed("mpi_concepts", ("    main()\n", killed)))
    assert passed(verdict) == []
    assert "Rank 1 failed first: was killed by SIGKILL" in told(verdict)


def test_short_messages_sent_before_any_is_received_deadlock_and_the_verdict_names_send():
    # MPI might buffer them.
    waiting = """if len(outgoing) < 100:
        communicator.Send(outgoing, dest=after)
        communicator.Recv(incoming, source=before)
    else:
        communicator.Sendrecv(outgoing, dest=after, recvbuf=incoming, source=before)"""
    exchange = "communicator.Sendrecv(outgoing, dest=after, recvbuf=incoming, source=before)"
    text = changed("ring_allreduce", (exchange, waiting))
    # A part of it for each run, and all of that until the deadlock is told.
    verdict = verdict_on("ring_allreduce", text, timeout=40)
    assert passed(verdict) == []
    for rank in (0, 1):
        assert f"Rank {rank} was waiting in Send, ring_allreduce.py line" in told(verdict)


def test_an_allreduce_of_mpis_own_is_no_ring():
    name = "ring_allreduce"
    text = changed(
        name,
        ("scatter_reduce(vector, bounds, communicator)\n    report", f"{MPIS_OWN}\n    report"),
        ("    allgather(vector, bounds, communicator)\n", f"    {WITHOUT_WAITING}\n"),
    )
    verdict = verdict_on(name, text)
    assert passed(verdict) == [1, 2]
    for used in ("Allreduce", "Ibcast"):
        assert f"each of ranks 0 and 1: sent 0 bytes in 0 messages, and called {used}" in told(
            verdict
        )


MPIS_OWN = "communicator.Allreduce(MPI.IN_PLACE, vector)"
# A communicator of its own kind is watched, too.
WITHOUT_WAITING = "communicator.Create_cart([communicator.size]).Ibcast(vector, root=0).Wait()"


ENDLESS = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True: print("on and on", flush=True)
"""


def test_a_script_that_never_ends_gets_its_verdict_when_its_time_is_up():
    verdict = verdict_on("fashion_mnist", ENDLESS, timeout=6)
    assert passed(verdict) == []
    assert "The run reached its time limit of 6 s and was ended." in told(verdict)
