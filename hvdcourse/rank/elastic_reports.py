"""What the workers of an elastic job tell of themselves, whatever rank they have at the moment.

An elastic job is one run: all its workers write among the evidence of its rank 0, each line whole.
"""

import os
import time
from collections.abc import Iterable, Sequence

import numpy as np

from hvdcourse.rank.fingerprints import fingerprints
from hvdcourse.rank.run_folder import RunFolder

PRINT_EVERY = 5
# The launcher looks for hosts once a second. The course's small epochs are over much sooner, and
# the job would end before a new worker could join.
PAUSE_SECONDS = 0.5


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
    variables: Iterable[np.ndarray],
) -> None:
    """Tell how an epoch went on this worker; rank 0 also prints every fifth.

    Where a planned host is still to join, it also makes the epoch longer.

    Args:
        epoch: which one has ended, counted from 1.
        epochs: how many there will be.
        rank: this worker's rank in this epoch.
        size: how many workers took part.
        images: the numbers of the images of each of this worker's batches.
        learning_rate: the rate at the end of the epoch.
        loss: mean over this worker's batches.
        accuracy: on the test images, between 0 and 1.
        variables: the weights, and the optimizer's state, which all workers should share.
    """
    if rank == 0 and (epoch in (1, epochs) or epoch % PRINT_EVERY == 0):
        print(
            f"epoch {epoch}/{epochs} workers {size} loss {loss:.3f} test accuracy {accuracy:.3f}",
            flush=True,
        )
    folder = RunFolder.of_this_process()
    if folder is None:
        return
    measured = {"epoch": epoch, "epochs": epochs, "loss": loss, "test_accuracy": accuracy}
    value = {
        **measured,
        "rank": rank,
        "size": size,
        "pid": os.getpid(),
        "time": time.time(),
        "images": np.concatenate(images),
        "learning_rate": learning_rate,
        "fingerprint": sum(projections[0] for projections in fingerprints(list(variables))),
    }
    folder.append(0, "evidence", {"report": "epoch", "value": value})
    if rank == 0:
        folder.append(0, "metrics", {**measured, "workers": size, "done": True})
    if somebody_is_to_come(folder):
        time.sleep(PAUSE_SECONDS)


def somebody_is_to_come(folder: RunFolder) -> bool:
    """Tell whether a host was added whose worker has not trained an epoch yet."""
    reports = [line for line in folder.read_lines(0, "evidence") if "report" in line]
    added = [number for number, line in enumerate(reports) if line["report"] == "added"]
    if not added:
        return False
    before, after = (
        {line["value"]["pid"] for line in part if line["report"] == "epoch"}
        for part in (reports[: added[-1]], reports[added[-1] :])
    )
    return after <= before
