"""Records what a rank communicates, at the lowest Python layer, so that no spelling escapes it.

Every entry joins the rank's evidence between its reports, in the order in which things happened.
"""

import functools
from collections.abc import Callable
from typing import Any

from hvdcourse.run_folder import RunFolder

# The operations of Horovod's TensorFlow library that move data or wait for other ranks.
_HOROVOD_OPERATIONS = {
    "horovod_allreduce": "allreduce",
    "horovod_grouped_allreduce": "allreduce",
    "horovod_allgather": "allgather",
    "horovod_grouped_allgather": "allgather",
    "horovod_broadcast": "broadcast",
    "horovod_broadcast_inplace": "broadcast",
    "horovod_broadcast_inplace_resource": "broadcast",
    "horovod_alltoall": "alltoall",
    "horovod_reducescatter": "reducescatter",
    "horovod_grouped_reducescatter": "reducescatter",
}
_MPI_SENDS = ("Send", "Isend", "Ssend", "Issend", "Bsend", "Rsend", "Sendrecv", "Sendrecv_replace")
_MPI_OBJECT_SENDS = ("send", "isend", "ssend", "issend", "bsend", "sendrecv")
_MPI_COLLECTIVES = ("Allreduce", "Reduce", "Allgather", "Allgatherv", "Gather", "Gatherv", "Bcast")
_MPI_COLLECTIVES += ("Scatter", "Scatterv", "Alltoall", "Alltoallv", "Reduce_scatter")
_MPI_COLLECTIVES += ("Reduce_scatter_block", "Iallreduce")
_MPI_COLLECTIVES += ("allreduce", "reduce", "allgather", "gather", "bcast", "scatter", "alltoall")


def _nothing_to_finish() -> None:
    pass


def observe(folder: RunFolder, rank: int, what: str) -> Callable[[], None]:
    """Start to record what this rank does, and return what is to be called when it is done.

    ``what`` is ``"horovod"`` or ``"mpi4py"`` for what it communicates through, ``"training"``, or
    for the challenge ``"challenge"`` or ``"timed challenge"``.
    """
    finish = _nothing_to_finish
    if what == "training":
        from hvdcourse.observe_training import TrainingObserver

        observer = TrainingObserver(folder, rank)
        observer.start()
        what, finish = "horovod", observer.finish
    elif what in ("challenge", "timed challenge"):
        from hvdcourse.observe_challenge import ChallengeObserver

        observer = ChallengeObserver(folder, rank, timed=what.startswith("timed"))
        observer.start()
        what, finish = "horovod", observer.finish

    def record(kind: str, name: str, size: int) -> None:
        folder.append(rank, "evidence", {kind: name, "bytes": size})

    {"horovod": observe_horovod, "mpi4py": observe_mpi4py}[what](record)
    return finish


def observe_horovod(record: Callable[[str, str, int], None]) -> None:
    """Record every collective that runs eagerly through Horovod's TensorFlow library."""
    from horovod.tensorflow import mpi_ops

    for operation, name in _HOROVOD_OPERATIONS.items():
        setattr(
            mpi_ops.MPI_LIB, operation, recorded(getattr(mpi_ops.MPI_LIB, operation), name, record)
        )


def recorded(
    operation: Callable[..., Any], name: str, record: Callable[[str, str, int], None]
) -> Callable[..., Any]:
    """Return the operation with a note taken of each call and of the bytes this rank puts in."""

    @functools.wraps(operation)
    def call(data: Any, *arguments: Any, **options: Any) -> Any:
        result = operation(data, *arguments, **options)
        record("collective", name, number_of_bytes(data))
        return result

    return call


def number_of_bytes(data: Any) -> int:
    """Return the size of an array, a tensor, or a list of them; 0 for what has no known size."""
    if isinstance(data, list | tuple):
        return sum(number_of_bytes(item) for item in data)
    size = getattr(data, "nbytes", None)
    if size is None and hasattr(data, "shape"):
        # In a graph a tensor has no values yet, but it does have a shape.
        size = (data.shape.num_elements() or 0) * data.dtype.size
    return int(size or 0)


def observe_mpi4py(record: Callable[[str, str, int], None]) -> None:
    """Record every message and collective of ``MPI.COMM_WORLD`` and of its duplicates."""
    from mpi4py import MPI

    def sends(method: str, as_object: bool) -> Callable[..., Any]:
        def call(self: Any, data: Any, *arguments: Any, **options: Any) -> Any:
            size = size_of_object(data) if as_object else MPI.memory(plain_buffer(data)).nbytes
            record("message", method, size)
            return getattr(MPI.Intracomm, method)(self, data, *arguments, **options)

        return call

    def size_of_object(data: Any) -> int:
        # An array counts as its numbers alone, however it travels.
        size = getattr(data, "nbytes", None)
        return len(MPI.pickle.dumps(data)) if size is None else size

    def collective(method: str) -> Callable[..., Any]:
        def call(self: Any, *arguments: Any, **options: Any) -> Any:
            record("collective", method, 0)
            return getattr(MPI.Intracomm, method)(self, *arguments, **options)

        return call

    methods = {name: sends(name, as_object=False) for name in _MPI_SENDS}
    methods |= {name: sends(name, as_object=True) for name in _MPI_OBJECT_SENDS}
    methods |= {name: collective(name) for name in _MPI_COLLECTIVES}
    MPI.COMM_WORLD = type("ObservedIntracomm", (MPI.Intracomm,), methods)(MPI.COMM_WORLD)


def plain_buffer(data: Any) -> Any:
    """Return the array of an mpi4py buffer, which may come as ``[array, count, datatype]``."""
    return data[0] if isinstance(data, list | tuple) else data
