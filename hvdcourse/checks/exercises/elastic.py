"""What each step of ``elastic.py`` must make true, in a job that loses a worker and gets one."""

import random
import statistics
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import (
    NotJudged,
    ObservedRun,
    Unmet,
    counted,
    demand_of_run,
    percent,
)
from hvdcourse.checks.exercise import Exercise, Step, Trial
from hvdcourse.checks.exercises.training_notes import SMALL, distance
from hvdcourse.launch.elastic import names_of_this_machine
from hvdcourse.launch.job import Disturbance
from hvdcourse.launch.result import CONSEQUENCES, LAST_ERROR, RunResult

EPOCHS = 24
LEARNING_RATE = 0.03
# Two runs with other orders of additions end up to so far apart in accuracy, and seldom farther.
MARGIN = 0.1
LAST = 5
# The others must go on with what they have kept themselves.
KILLED = 0
# The kill comes at the end of the next epoch, the seventh: a script that commits every second to
# sixth epoch, or every tenth, does not keep this one.
KILL_AFTER = 6
# When a worker dies, Horovod gives up its host: so each has one of its own.
HOSTS = (1, 1)
ABOUT_SURVIVAL = "step 1 is about that"
ALIKE = "in every epoch all workers have the same weights and optimizer variables"


def trials() -> list[Trial]:
    """Return an undisturbed run, and one whose rank 0 is killed and that gets a worker later."""
    settings = {
        "images": random.randrange(561, 640, 2),
        "epochs": EPOCHS,
        "learning_rate": LEARNING_RATE,
    }
    add = KILL_AFTER + random.randrange(3, 5)
    *_, another = names_of_this_machine()
    kill = Disturbance(after_epoch=KILL_AFTER, kill=[KILLED])
    plan = (kill, Disturbance(after_epoch=add, add=another))
    return [
        Trial(hosts=HOSTS, arguments=settings, steps=(3,)),
        Trial(hosts=HOSTS, arguments=settings, plan=plan),
    ]


# What a worker reports of an epoch that it ended.
Epoch = dict[str, Any]


class Job:
    """What the workers of an elastic job reported, and what was done to them."""

    def __init__(self, run: ObservedRun):
        (self.driver,) = run.ranks
        if not any(entry.get("report") == "killed" for entry in self.driver.entries):
            raise NotJudged(
                "the script runs on all workers until the check kills one",
                end_in_words(run.result),
            )
        self.epochs: list[Epoch] = self.driver.all_reported("epoch")
        killed = self.driver.reported("killed")
        self.before_kill = [epoch for epoch in self.epochs if epoch["time"] <= killed["time"]]
        self.survived = [epoch for epoch in self.epochs if epoch["pid"] not in killed["pids"]]
        self.after_kill = [epoch for epoch in self.survived if epoch["time"] > killed["time"]]

    def whole_epochs(self) -> list[list[Epoch]]:
        """Return, for each epoch that all its workers have ended, what they reported of it."""
        groups: dict[tuple[int, int], list[Epoch]] = {}
        for epoch in self.epochs:
            groups.setdefault((epoch["epoch"], epoch["size"]), []).append(epoch)
        return [group for (_, size), group in groups.items() if len(group) == size]

    def changed(self) -> "Job":
        """Return the job. Raises NotJudged where its number of workers never changed."""
        if len({len(group) for group in self.whole_epochs()}) < 2:
            expected = f"after rank {KILLED} was killed, the others end an epoch"
            raise NotJudged(expected, [self.in_words(), ABOUT_SURVIVAL])
        return self

    def in_words(self) -> str:
        """Return which epochs were trained by how many workers."""
        rows: list[tuple[int, int, int]] = []  # first epoch, last epoch, workers
        for epoch in sorted(self.epochs, key=lambda epoch: epoch["time"]):
            number, size = epoch["epoch"], epoch["size"]
            # Rank 0 does not tell of the epoch at whose end it is killed, and the others do.
            if rows and rows[-1][1:] == (number, size):
                continue
            first = number
            if rows and rows[-1][1:] == (number - 1, size):
                first, _, _ = rows.pop()
            rows.append((first, number, size))
        told = [
            f"{f'epochs {first} to {last}' if last > first else f'epoch {last}'}: "
            f"{counted(size, 'worker')}"
            for first, last, size in rows
        ]
        return ", then ".join(told) or "no worker ended an epoch"


def check_survives(run: ObservedRun) -> None:
    """Step 1: the job goes on after a worker was killed, and ends by itself, at its last epoch."""
    expected = (
        f"the job goes on after rank {KILLED} was killed, and ends by itself after {EPOCHS} epochs"
    )
    job = Job(run)
    if not run.result.ok:
        raise Unmet(expected, how_it_ended(run, job))
    last = max((epoch["epoch"] for epoch in job.after_kill), default=0)
    demand_of_run(expected, last == EPOCHS, job.in_words())


def how_it_ended(run: ObservedRun, job: Job) -> list[str]:
    """Return in words how a job ended that did not go on to its last epoch."""
    lines = end_in_words(run.result)
    added = any(entry.get("report") == "added" for entry in job.driver.entries)
    if run.result.reason in ("standstill", "time limit") and added:
        lines.append(
            "It stood still after a host was added: does the script call a collective before "
            "train, where a new worker waits alone?"
        )
    elif run.result.reason == "failed":
        told_of_the_loss = any(sign in line for sign in CONSEQUENCES for line in lines)
        lines.insert(
            0,
            "After the kill the other worker's script failed"
            if LAST_ERROR in lines and not told_of_the_loss
            else "The other worker ended, too: is train called through hvd.elastic.run, and does "
            "the error that a lost worker causes reach it?",
        )
    return [*lines, job.in_words()]


def end_in_words(result: RunResult) -> list[str]:
    """Return in words how a job ended, with the frames of libraries left out of a traceback."""
    kept, of_library = [], False
    for line in result.explain().splitlines():
        if line.startswith("  File "):
            of_library = "site-packages" in line or '"<string>"' in line
        elif not line.startswith("    "):
            of_library = False
        if not of_library:
            kept.append(line)
    return kept


def check_commits(run: ObservedRun) -> None:
    """Step 2: a killed worker costs the epoch that was under way, and none before it."""
    job = Job(run)
    expected = "after a worker was killed, training goes on after the last epoch that had ended"
    alone = [epoch for epoch in job.after_kill if epoch["size"] < run.np]
    if not alone:
        raise NotJudged(expected, [job.in_words(), ABOUT_SURVIVAL])
    new_start = min(epoch["time"] for epoch in alone)
    # The other worker tells of its epoch a moment after the kill, and before the new start.
    last = max(epoch["epoch"] for epoch in job.epochs if epoch["time"] < new_start)
    goes_on_with = min(epoch["epoch"] for epoch in alone)
    demand_of_run(
        expected,
        goes_on_with > last,
        f"epoch {last} had ended when rank {KILLED} was killed; the training went on with epoch "
        f"{goes_on_with}",
        job.in_words(),
    )
    check_kept(job)
    check_joined(run, job)


def check_kept(job: Job) -> None:
    """Raise Unmet where a worker ended two epochs, and kept no new state in between."""
    # The kill came in one epoch: in another one it might have cost more.
    for epoch in sorted(job.epochs, key=lambda one: (one["epoch"], one["rank"])):
        number = epoch["epoch"]
        demand_of_run(
            "the state is kept in every epoch, and not only in some",
            epoch["kept"],
            f"rank {epoch['rank']} kept no new state between the ends of epochs {number - 1} "
            f"and {number}",
        )


def check_joined(run: ObservedRun, job: Job) -> None:
    """Raise Unmet where no worker took part that came later; NotJudged where the job broke off."""
    at_start = {epoch["pid"] for epoch in job.before_kill}
    if any(epoch["pid"] not in at_start for epoch in job.epochs):
        return
    expected = "a worker on a host that was added takes part from the next commit on"
    if not run.result.ok:
        raise NotJudged(expected, [job.in_words(), ABOUT_SURVIVAL])
    host = job.driver.reported("added")["host"]
    raise Unmet(expected, [f"the host {host} was added", job.in_words()])


def check_state(run: ObservedRun) -> None:
    """Step 3: all workers have the same weights and momentum, also one that came later.

    Once steps 4 and 5 are met, the job must also end as accurate as an undisturbed one.
    """
    if not run.disturbed:
        return
    job = Job(run)
    try:
        check_joined(run, job)
    except NotJudged:
        raise
    except Unmet as unmet:
        raise NotJudged(unmet.expected, [*unmet.seen, "step 2 is about that"]) from None
    for group in job.whole_epochs():
        first, *others = sorted(group, key=lambda epoch: epoch["rank"])
        rates = [epoch["learning_rate"] for epoch in (first, *others)]
        if not np.allclose(rates, rates[0], rtol=1e-4):
            told = ", ".join(f"{rate:.4g}" for rate in rates)
            raise NotJudged(
                ALIKE,
                [
                    f"in epoch {first['epoch']} the workers' learning rates are {told}: step 4 is "
                    "about that"
                ],
            )
        far = {epoch["rank"]: far_from(epoch, first) for epoch in others}
        demand_of_run(
            ALIKE,
            all(max(of_rank) < SMALL for of_rank in far.values()),
            *(
                f"after epoch {first['epoch']}, rank {rank}: its weights are {percent(weights)} "
                f"away from rank 0's, and its optimizer's variables {percent(variables)}"
                for rank, (weights, variables) in far.items()
            ),
        )
    # Half of the images, or another rate, cost accuracy, too: that is what later steps are about.
    try:
        check_rate(run)
        check_shares_of_workers(run)
    except Unmet:
        return
    check_accuracy(run, job)


def far_from(epoch: Epoch, other: Epoch) -> list[float]:
    """Return how far weights and optimizer variables are from another worker's, relatively."""
    pairs = [
        (np.array(epoch[what]), np.array(other[what]))
        for what in ("weights", "optimizer_variables")
    ]
    return [distance(own, reference) for own, reference in pairs]


def check_accuracy(run: ObservedRun, job: Job) -> None:
    """Raise Unmet unless the job ends as accurate as the run that nothing was done to."""
    (undisturbed,) = run.earlier
    usual = final_accuracy(undisturbed.ranks[0].all_reported("epoch"))
    accuracy = final_accuracy(job.survived)
    demand_of_run(
        f"the test accuracy ends at most {MARGIN} below that of an undisturbed run, {usual:.3f}",
        accuracy >= usual - MARGIN,
        f"median of the last {LAST} epochs: {accuracy:.3f}",
    )


def final_accuracy(epochs: list[Epoch]) -> float:
    """Return the median test accuracy of rank 0's last epochs."""
    values = [epoch["test_accuracy"] for epoch in epochs if epoch["rank"] == 0]
    return statistics.median(values[-LAST:])


def check_rate(run: ObservedRun) -> None:
    """Step 4: the learning rate is that of one worker times the workers that there are."""
    for epoch in Job(run).changed().epochs:
        size, rate = epoch["size"], epoch["learning_rate"]
        demand_of_run(
            f"with {counted(size, 'worker')} the learning rate is {size} x {LEARNING_RATE}",
            abs(rate - LEARNING_RATE * size) <= 1e-4 * LEARNING_RATE * size,
            f"epoch {epoch['epoch']}, rank {epoch['rank']}: {rate:.4g}, which is "
            f"{rate / LEARNING_RATE:.3g} x {LEARNING_RATE}",
        )


def check_shares_of_workers(run: ObservedRun) -> None:
    """Step 5: in each epoch the workers that there are, together, train on each image once."""
    count = run.arguments["images"]
    for group in Job(run).changed().whole_epochs():
        images = sorted(image for epoch in group for image in epoch["images"])
        demand_of_run(
            f"in each epoch the workers, together, train on each of the {count} images once",
            images == list(range(count)),
            f"epoch {group[0]['epoch']}, {counted(len(group), 'worker')}: "
            f"{len(set(images))} different images, {len(images)} in all",
        )


STEPS = (
    Step(number=1, title="The job outlives a worker", check=check_survives),
    Step(
        number=2, title="At most one epoch is lost, and new workers are let in", check=check_commits
    ),
    Step(number=3, title="The state is the whole state", check=check_state),
    Step(number=4, title="The learning rate follows the number of workers", check=check_rate),
    Step(number=5, title="The shares follow the number of workers", check=check_shares_of_workers),
)

EXERCISE = Exercise(
    name="elastic",
    notebook="06_beyond_one_machine",
    trials=lambda _: trials(),
    steps=STEPS,
    standstill=30,
)
