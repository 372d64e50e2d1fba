"""What each step of ``elastic.py`` must make true, in a job that loses a worker and gets one."""

import random
import statistics
from typing import Any

from hvdcourse.elastic_run import names_of_this_machine
from hvdcourse.evidence import ObservedRun, Unmet
from hvdcourse.trial import Trial

EPOCHS = 24
LEARNING_RATE = 0.03
# Two runs with other orders of additions end up to so far apart in accuracy, and seldom farther.
MARGIN = 0.1
LAST = 5


def trials() -> list[Trial]:
    """Return an undisturbed run, and one whose rank 1 is killed and that gets a worker later."""
    settings = {
        "images": random.randrange(561, 640, 2),
        "epochs": EPOCHS,
        "learning_rate": LEARNING_RATE,
    }
    kill, add = random.randrange(3, 6), random.randrange(7, 9)
    *_, another = names_of_this_machine()
    plan = ({"after_epoch": kill, "kill": 1}, {"after_epoch": add, "add": another})
    return [Trial(2, settings, steps=(3,)), Trial(2, settings, plan=plan)]


class Job:
    """What the workers of an elastic job told, and what was done to them."""

    def __init__(self, run: ObservedRun):
        self.run = run
        (self.driver,) = run.ranks
        self.epochs = self.driver.all_found("epoch")
        self.killed = self.driver.found("killed")
        self.survived = [one for one in self.epochs if one["pid"] not in self.killed["pids"]]

    def whole_epochs(self) -> list[list[dict[str, Any]]]:
        """Return, for each epoch that all its workers have ended, what they told of it."""
        groups: dict[tuple[int, int], list[dict[str, Any]]] = {}
        for one in self.epochs:
            groups.setdefault((one["epoch"], one["size"]), []).append(one)
        return [group for (_, size), group in groups.items() if len(group) == size]

    def changed(self) -> "Job":
        """Return the job. Raises Unmet where no other number of workers ever ended an epoch."""
        if len({len(group) for group in self.whole_epochs()}) < 2:
            raise Unmet("after rank 1 was killed, the others end an epoch", told_of(self))
        return self


def is_disturbed(run: ObservedRun) -> bool:
    """Whether this run is the one in which a worker was killed."""
    return run.result.np == 1  # the launcher alone is a rank of the run


def workers(count: int) -> str:
    """Return a number of workers in words."""
    return "1 worker" if count == 1 else f"{count} workers"


def told_of(job: Job) -> list[str]:
    """Return in words which epochs were trained by how many workers."""
    rows = [
        f"epoch {one['epoch']}: {workers(one['size'])}" for one in job.survived if one["rank"] == 0
    ]
    return [", ".join(rows) or "no worker ended an epoch"]


def check_survives(run: ObservedRun) -> None:
    """Step 1: the job goes on after a worker was killed, and ends by itself, at its last epoch."""
    if not is_disturbed(run):
        return
    expected = f"the job goes on after rank 1 was killed, and ends by itself after {EPOCHS} epochs"
    if not run.result.ok:
        raise Unmet(expected, run.result.explain().splitlines())
    job = Job(run)
    after = [one["epoch"] for one in job.survived if one["time"] > job.killed["time"]]
    if not after or max(after) != EPOCHS:
        raise Unmet(expected, told_of(job))


def check_commits(run: ObservedRun) -> None:
    """Step 2: a killed worker costs at most the epoch that was under way."""
    if not is_disturbed(run):
        return
    job = Job(run)
    before = [one["epoch"] for one in job.epochs if one["time"] <= job.killed["time"]]
    after = [one["epoch"] for one in job.survived if one["time"] > job.killed["time"]]
    if not after or min(after) < max(before):
        raise Unmet(
            "after a worker was killed, training goes on with the epoch that was under way",
            [f"rank 1 was killed after epoch {max(before)}", *told_of(job)],
        )
    joined(job)


def joined(job: Job) -> list[dict[str, Any]]:
    """Return what a worker told that came later. Raises Unmet where none took part."""
    at_start = {one["pid"] for one in job.epochs if one["time"] <= job.killed["time"]}
    found = [one for one in job.epochs if one["pid"] not in at_start]
    if not found:
        raise Unmet(
            "a worker on a host that was added takes part from the next commit on",
            [f"the host {job.driver.found('added')['host']} was added", *told_of(job)],
        )
    return found


def check_state(run: ObservedRun) -> None:
    """Step 3: all workers have the same weights and momentum, also one that came later."""
    if not is_disturbed(run):
        return
    job = Job(run)
    joined(job)
    for group in job.whole_epochs():
        values = [one["fingerprint"] for one in sorted(group, key=lambda one: one["rank"])]
        if max(values) - min(values) > 1e-6 * max(1.0, *map(abs, values)):
            raise Unmet(
                "in every epoch all workers have the same weights and optimizer variables",
                [
                    f"after epoch {group[0]['epoch']}, rank {rank}: fingerprint {value:.6g}"
                    for rank, value in enumerate(values)
                ],
            )
    check_accuracy(run, job)


def check_accuracy(run: ObservedRun, job: Job) -> None:
    """Raise Unmet unless the job ends as accurate as the run that nothing was done to."""
    (undisturbed,) = run.earlier
    usual = final_accuracy(undisturbed.ranks[0].all_found("epoch"))
    found = final_accuracy(job.survived)
    if found < usual - MARGIN:
        raise Unmet(
            f"the test accuracy ends at that of an undisturbed run, {usual:.3f}, or less than "
            f"{MARGIN} below it",
            [f"median of the last {LAST} epochs: {found:.3f}"],
        )


def final_accuracy(epochs: list[dict[str, Any]]) -> float:
    """Return the median test accuracy of rank 0's last epochs."""
    values = [one["test_accuracy"] for one in epochs if one["rank"] == 0]
    return statistics.median(values[-LAST:])


def check_rate(run: ObservedRun) -> None:
    """Step 4: the learning rate is that of one worker times the workers that there are."""
    if not is_disturbed(run):
        return
    for one in Job(run).changed().epochs:
        wanted = LEARNING_RATE * one["size"]
        if abs(one["learning_rate"] - wanted) > 1e-4 * wanted:
            raise Unmet(
                f"with {workers(one['size'])} the learning rate is {one['size']} x {LEARNING_RATE}",
                [f"epoch {one['epoch']}, rank {one['rank']}: {one['learning_rate']:.4g}"],
            )


def check_shares(run: ObservedRun) -> None:
    """Step 5: in each epoch the workers that there are, together, train on each image once."""
    if not is_disturbed(run):
        return
    count = run.arguments["images"]
    for group in Job(run).changed().whole_epochs():
        seen = sorted(image for one in group for image in one["images"])
        if seen != list(range(count)):
            raise Unmet(
                f"in each epoch the workers, together, train on each of the {count} images once",
                [
                    f"epoch {group[0]['epoch']}, {workers(len(group))}: {len(set(seen))} different "
                    f"images, {len(seen)} in all"
                ],
            )


STEPS = (
    (
        1,
        "The job outlives a worker",
        "The decorator @hvd.elastic.run above train. It catches the error that a collective ends "
        "with when a worker is gone, starts Horovod anew with those that are left, and calls the "
        "function again.",
        check_survives,
    ),
    (
        2,
        "At most one epoch is lost",
        "state.commit() at the end of each epoch, after state.epoch was raised.",
        check_commits,
        (1,),
    ),
    (
        3,
        "The state is the whole state",
        "hvd.elastic.TensorFlowKerasState(model, optimizer, epoch=0) holds the model and the "
        "optimizer, too, and sends them to workers that join.",
        check_state,
        (1, 2),
    ),
    (
        4,
        "The learning rate follows the number of workers",
        "hvd.size() tells how many workers there are now. train is called again after each change, "
        "and what stands at its beginning runs again.",
        check_rate,
        (1,),
    ),
    (
        5,
        "The shares follow the number of workers",
        "Ask hvd.rank() and hvd.size() anew in every epoch.",
        check_shares,
        (1,),
    ),
)
