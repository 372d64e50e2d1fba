"""What the workers of an elastic job tell of themselves, whatever rank they have at the moment.

An elastic job is one run: all its workers write among the evidence of its rank 0, each line whole.
"""

import os
import time
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from hvdcourse.rank.fingerprints import fingerprints
from hvdcourse.rank.run_folder import RunFolder

PRINT_EVERY = 5
# The launcher looks for hosts once a second. The course's small epochs are over much sooner, and
# the job would end before a new worker could join.
PAUSE_SECONDS = 0.5
_LOOK_SECONDS = 0.02
# A kill does not come where other workers never tell of this epoch.
_KILL_SECONDS = 30.0
# The counts in the state that was kept when this worker last told of an epoch.
_kept_before: list[Any] = []


def report_epoch(
    epoch: int,
    epochs: int,
    *,
    rank: int,
    size: int,
    images: Sequence[np.ndarray],
    learning_rate: float,
    loss: float,
    accuracy: float,
    weights: Iterable[np.ndarray],
    optimizer_variables: Iterable[np.ndarray],
) -> None:
    """Tell how an epoch went on this worker; rank 0 also prints every fifth.

    While a planned kill is due it waits for it, so that a worker is killed in the same epoch on
    every machine. Where a planned host is still to join, it also makes the epoch longer.

    Args:
        epoch: which one has ended, counted from 1.
        epochs: how many there will be.
        rank: this worker's rank in this epoch.
        size: how many workers took part.
        images: the numbers of the images of each of this worker's batches.
        learning_rate: the rate at the end of the epoch.
        loss: mean over this worker's batches.
        accuracy: on the test images, between 0 and 1.
        weights: of the model; all workers should have the same.
        optimizer_variables: the optimizer's state; all workers should have the same.
    """
    if rank == 0 and (epoch in (1, epochs) or epoch % PRINT_EVERY == 0):
        print(
            f"epoch {epoch}/{epochs} workers {size} loss {loss:.3f} test accuracy {accuracy:.3f}",
            flush=True,
        )
    folder = RunFolder.of_this_process()
    if folder is None:
        return
    if kill_is_due(read_reports(folder), epoch):
        wait_for_kill(folder, epoch, rank, size)
    measured = {"epoch": epoch, "epochs": epochs, "loss": loss, "test_accuracy": accuracy}
    value = {
        **measured,
        "rank": rank,
        "size": size,
        "pid": os.getpid(),
        "time": time.time(),
        "images": np.concatenate(images),
        "learning_rate": learning_rate,
        "weights": fingerprints(list(weights)),
        "optimizer_variables": fingerprints(list(optimizer_variables)),
        "kept": state_was_kept(),
    }
    folder.append(0, "evidence", {"report": "epoch", "value": value})
    if rank == 0:
        folder.append(0, "metrics", {**measured, "workers": size, "done": True})
    if somebody_is_to_come(read_reports(folder)):
        time.sleep(PAUSE_SECONDS)


def state_was_kept() -> bool:
    """Tell whether a new state of the job was kept since this worker last told of an epoch."""
    from horovod.common.elastic import notification_manager

    kept = [
        counts_in(getattr(state, "_saved_state", {})) for state in notification_manager._listeners
    ]
    before, _kept_before[:] = list(_kept_before), kept
    return not any(one == other for one in kept for other in before)


def counts_in(saved: dict[str, Any]) -> Any:
    """Return the whole numbers of a kept state, among them its epoch: a new state has another.

    A state without any equals no other, and so counts as new.
    """
    counts = {name: value for name, value in saved.items() if isinstance(value, Integral)}
    return counts or object()


def read_reports(folder: RunFolder) -> list[dict[str, Any]]:
    """Return what the workers and the launcher have told so far, in its order."""
    return [line for line in folder.read_lines(0, "evidence") if "report" in line]


def ranks_that_ended(reports: list[dict[str, Any]], epoch: int) -> set[int]:
    """Return the ranks of the workers that have told of this epoch, or of a later one."""
    told = [line["value"] for line in reports if line["report"] == "epoch"]
    return {value["rank"] for value in told if value["epoch"] >= epoch}


def kill_is_due(reports: list[dict[str, Any]], epoch: int) -> bool:
    """Tell whether the plan's next kill comes before the end of this epoch.

    It does where that is a later epoch than the kill's, which all that are to be killed have ended.
    """
    done = sum(line["report"] == "killed" for line in reports)
    planned = [line["value"] for line in reports if line["report"] == "planned kill"][done:]
    if not planned or epoch <= planned[0]["after_epoch"]:
        return False
    return ranks_that_ended(reports, planned[0]["after_epoch"]).issuperset(planned[0]["ranks"])


def wait_for_kill(folder: RunFolder, epoch: int, rank: int, size: int) -> None:
    """Tell that this worker waits for the kill that is due in this epoch, and do so."""
    value = {"rank": rank, "size": size, "pid": os.getpid()}
    folder.append(0, "evidence", {"report": "waits for kill", "value": value})
    deadline = time.monotonic() + _KILL_SECONDS
    while kill_is_due(read_reports(folder), epoch) and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)


def waiting_workers(reports: list[dict[str, Any]]) -> dict[int, int]:
    """Return the process of each rank, once all workers wait for a kill, and none before."""
    killed = [number for number, line in enumerate(reports) if line["report"] == "killed"]
    since = reports[killed[-1] :] if killed else reports
    waiting = [line["value"] for line in since if line["report"] == "waits for kill"]
    processes = {worker["rank"]: worker["pid"] for worker in waiting}
    return processes if waiting and len(processes) == waiting[-1]["size"] else {}


def somebody_is_to_come(reports: list[dict[str, Any]]) -> bool:
    """Tell whether a host was added whose worker has not trained an epoch yet."""
    added = [number for number, line in enumerate(reports) if line["report"] == "added"]
    if not added:
        return False
    before, after = (
        {line["value"]["pid"] for line in part if line["report"] == "epoch"}
        for part in (reports[: added[-1]], reports[added[-1] :])
    )
    return after <= before
