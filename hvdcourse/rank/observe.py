"""Records what a rank communicates, at the lowest Python layer, so that no spelling escapes it.

Every entry joins the rank's evidence between its reports, in the order in which things happened.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

from hvdcourse.rank.fingerprints import number_of_bytes
from hvdcourse.rank.place import Place
from hvdcourse.rank.run_folder import RunFolder

# The operations of Horovod's TensorFlow library that move data or wait for other ranks.
_HOROVOD_OPERATIONS = (
    *("allreduce", "grouped_allreduce", "allgather", "grouped_allgather", "alltoall"),
    *("broadcast", "broadcast_inplace", "broadcast_inplace_resource", "join"),
    *("reducescatter", "grouped_reducescatter"),
)


def observe(folder: RunFolder, rank: int, what: str) -> Callable[[], None] | None:
    """Start to record what this rank does; return what is to be called when it is done, if any.

    ``what`` is ``"horovod"`` or ``"mpi4py"`` for what it communicates through, ``"concepts"`` for
    Horovod with digits that differ by rank, ``"training"``, for the comparison of any script's
    ranks ``"ranks"``, or for the challenge ``"challenge"`` or ``"timed challenge"``.
    """
    finish = None
    if what in ("training", "ranks"):
        from hvdcourse.rank.observe_training import TrainingObserver
        from hvdcourse.rank.tracing import run_graphs_as_made

        run_graphs_as_made()
        observer = TrainingObserver(folder, rank)
        # On one rank a script must also run where there is no GPU.
        pretend = what == "training" and Place.from_environment().size > 1
        observer.start(pretend_gpus=pretend)
        # What is noted at the end is of the digits, which another script's model may not fit.
        finish = observer.finish if what == "training" else None
    elif what == "concepts":
        from hvdcourse.rank.own_digits import give_own_digits

        give_own_digits(rank)
    elif what in ("challenge", "timed challenge"):
        from hvdcourse.rank.observe_challenge import ChallengeObserver

        observer = ChallengeObserver(folder, rank, timed=what.startswith("timed"))
        observer.start()
        finish = observer.finish

    def record(kind: str, name: str, size: int, **more: float) -> None:
        folder.append(rank, "evidence", {kind: name, "bytes": size, **more})

    if what == "mpi4py":
        from hvdcourse.rank.observe_mpi4py import MessageObserver

        messages = MessageObserver(record)
        messages.start()
        return messages.finish
    observe_horovod(record)
    return finish


def observe_horovod(record: Callable[..., None]) -> None:
    """Record every collective that runs eagerly through Horovod's TensorFlow library."""
    from horovod.tensorflow import mpi_ops

    for operation in _HOROVOD_OPERATIONS:
        name = operation.removeprefix("grouped_").partition("_")[0]
        call = recorded(getattr(mpi_ops.MPI_LIB, f"horovod_{operation}"), name, record)
        setattr(mpi_ops.MPI_LIB, f"horovod_{operation}", call)


def recorded(
    operation: Callable[..., Any], name: str, record: Callable[..., None]
) -> Callable[..., Any]:
    """Return the operation with a note taken of each call and of the bytes this rank puts in."""

    @functools.wraps(operation)
    def call(*data: Any, **options: Any) -> Any:
        result = operation(*data, **options)
        root = {"root": options["root_rank"]} if "root_rank" in options else {}
        record("collective", name, number_of_bytes(data[:1]), time=time.time(), **root)
        return result

    return call
