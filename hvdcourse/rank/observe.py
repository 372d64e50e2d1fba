"""Records what a rank communicates, at the lowest Python layer, so that no spelling escapes it.

Every entry joins the rank's evidence between its reports, in the order in which things happened.
"""

import functools
import inspect
import re
import time
from collections.abc import Callable
from numbers import Integral
from typing import Any

from hvdcourse.rank.fingerprints import number_of_bytes
from hvdcourse.rank.run_folder import RunFolder

# The operations of Horovod's TensorFlow library that move data or wait for other ranks.
_HOROVOD_OPERATIONS = (
    *("allreduce", "grouped_allreduce", "allgather", "grouped_allgather", "alltoall"),
    *("broadcast", "broadcast_inplace", "broadcast_inplace_resource", "join"),
    *("reducescatter", "grouped_reducescatter"),
)
_MPI_SENDS = (
    *("Send", "Isend", "Ssend", "Issend", "Bsend", "Ibsend", "Rsend", "Irsend"),
    *("Sendrecv", "Sendrecv_replace", "Isendrecv", "Isendrecv_replace"),
    *("Send_init", "Ssend_init", "Bsend_init", "Rsend_init"),
)
_MPI_OBJECT_SENDS = ("send", "isend", "ssend", "issend", "bsend", "ibsend", "sendrecv")
# MPI may buffer a short message, or wait until it is received. Here it always waits.
_WAITING = {"Send": "Ssend", "send": "ssend"}
# All that move data: blocking or not, persistent, among neighbours. One-sided operations are not
# here: this Open MPI makes no windows in a process with threads, as mpi4py's are.
_MPI_COLLECTIVE = re.compile(
    "(i?neighbor_|i)?(allgather|allreduce|alltoall|bcast|exscan|gather|reduce|reduce_scatter|scan|"
    "scatter)(v|w|_block)?(_init)?",
    re.IGNORECASE,
)
LATE_SECONDS = 0.02
# What they return is of a plain type again, on which nothing would be recorded.
_MPI_CREATIONS = (
    *("Split", "Split_type", "Create", "Create_group", "Create_cart", "Create_graph"),
    *("Create_dist_graph", "Create_dist_graph_adjacent", "Sub"),
)


def _nothing_to_finish() -> None:
    pass


def observe(folder: RunFolder, rank: int, what: str) -> Callable[[], None]:
    """Start to record what this rank does, and return what is to be called when it is done.

    ``what`` is ``"horovod"`` or ``"mpi4py"`` for what it communicates through, ``"concepts"`` for
    Horovod with digits that differ by rank, ``"training"``, for the comparison of any script's
    ranks ``"ranks"``, or for the challenge ``"challenge"`` or ``"timed challenge"``.
    """
    finish = _nothing_to_finish
    if what in ("training", "ranks"):
        from hvdcourse.rank.observe_training import TrainingObserver

        observer = TrainingObserver(folder, rank)
        observer.start(pretend_gpus=what == "training")
        # What is noted at the end is of the digits, which another script's model may not fit.
        finish = observer.finish if what == "training" else _nothing_to_finish
        what = "horovod"
    elif what == "concepts":
        from hvdcourse.rank.own_digits import give_own_digits

        give_own_digits(rank)
        what = "horovod"
    elif what in ("challenge", "timed challenge"):
        from hvdcourse.rank.observe_challenge import ChallengeObserver

        observer = ChallengeObserver(folder, rank, timed=what.startswith("timed"))
        observer.start()
        what, finish = "horovod", observer.finish

    def record(kind: str, name: str, size: int, **more: int) -> None:
        folder.append(rank, "evidence", {kind: name, "bytes": size, **more})

    if what == "mpi4py":
        return observe_mpi4py(record)
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
        record("collective", name, number_of_bytes(data[:1]), **root)
        return result

    return call


def observe_mpi4py(record: Callable[..., None]) -> Callable[[], None]:
    """Record every message and collective of ``MPI.COMM_WORLD`` and of all that is made of it.

    Returns what notes at the end how many messages were sent that nothing has waited for.
    """
    from mpi4py import MPI

    world = MPI.COMM_WORLD.group
    requests: list[Any] = []

    def observed(communicator: Any) -> Any:
        """Return the communicator with a note taken of each call that moves data."""
        if communicator == MPI.COMM_NULL:
            return communicator
        kind = type(communicator)
        methods = {
            name: observed_method(name, getattr(kind, _WAITING.get(name, name)))
            for name in dir(kind)
        }
        observed_methods = {name: method for name, method in methods.items() if method is not None}
        return type(f"Observed{kind.__name__}", (kind,), observed_methods)(communicator)

    def observed_method(name: str, method: Callable[..., Any]) -> Callable[..., Any] | None:
        if name in (*_MPI_SENDS, *_MPI_OBJECT_SENDS):
            return send(name, method)
        if name in _MPI_CREATIONS:
            return lambda *arguments, **options: observed(method(*arguments, **options))
        return collective(name, method) if _MPI_COLLECTIVE.fullmatch(name) else None

    def send(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(method)

        def call(*arguments: Any, **options: Any) -> Any:
            given = signature.bind(*arguments, **options).arguments
            communicator, data, *_ = given.values()
            if given["dest"] == MPI.PROC_NULL:
                return method(*arguments, **options)
            size = size_of_object(data) if name in _MPI_OBJECT_SENDS else size_of_buffer(data)
            # Ranks of the world, whatever number they have in the communicator.
            (to,) = communicator.group.Translate_ranks([given["dest"]], world)
            record("message", name, size, to=to)
            if MPI.COMM_WORLD.rank % 2:
                # Half of the ranks are late, so that a message that nobody waits for is missed.
                time.sleep(LATE_SECONDS)
            result = method(*arguments, **options)
            if name.lower().startswith("i"):
                requests.append(result)
            return result

        return call

    def note_unfinished() -> None:
        # A request that has been waited for is none any more.
        unfinished = sum(request != MPI.REQUEST_NULL for request in requests)
        record("note", "unfinished sends", 0, value=unfinished)
        # Where MPI ends with them it may crash, which says nothing of the mistake.
        latest = time.monotonic() + 2
        while not MPI.Request.Testall(requests) and time.monotonic() < latest:
            time.sleep(LATE_SECONDS)

    def size_of_object(data: Any) -> int:
        # Arrays count as their numbers alone, however and with what they travel.
        parts = data if isinstance(data, list | tuple) else [data]
        sizes = [part.nbytes for part in parts if getattr(part, "ndim", 0)]
        return sum(sizes) if sizes else len(MPI.pickle.dumps(data))

    def size_of_buffer(data: Any) -> int:
        array, count, kind = parts_of_buffer(data)
        if count is None:
            return MPI.memory(array).nbytes
        size = kind.Get_size() if isinstance(kind, MPI.Datatype) else getattr(array, "itemsize", 1)
        return int(count) * size

    def collective(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(method)

        def call(*arguments: Any, **options: Any) -> Any:
            _, *given = signature.bind(*arguments, **options).arguments.values()
            record("collective", name, size_put_in(name, given))
            return method(*arguments, **options)

        return call

    def size_put_in(name: str, given: list[Any]) -> int:
        """Return the bytes that this rank puts into an allreduce; 0 for other collectives."""
        if "allreduce" not in name.lower():
            return 0
        if name[0].islower():
            return size_of_object(given[0])
        return size_of_buffer(given[1] if given[0] is MPI.IN_PLACE else given[0])

    # mpi4py declares it final; whoever asks for it later must get the observed one.
    vars(MPI)["COMM_WORLD"] = observed(MPI.COMM_WORLD)
    return note_unfinished


def parts_of_buffer(data: Any) -> tuple[Any, Any, Any]:
    """Return the array of an mpi4py buffer, how many numbers travel, None for all, and their type.

    It may come as [array, datatype], [array, count], [array, count, datatype], or with
    (count, displacement) in the place of the count:
    https://mpi4py.readthedocs.io/en/stable/tutorial.html#communication-of-buffer-like-objects
    """
    if not isinstance(data, list | tuple):
        return data, None, None
    array, *rest = data
    count = rest[0] if rest else None
    if isinstance(count, list | tuple):
        count = count[0]
    return array, count if isinstance(count, Integral) else None, rest[-1] if rest else None
