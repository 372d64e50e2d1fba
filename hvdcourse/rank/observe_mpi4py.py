"""Records every message and collective of mpi4py's communicators.

Importing this starts MPI.
"""

import inspect
import re
import time
from collections.abc import Callable
from numbers import Integral
from typing import Any

from mpi4py import MPI

_SENDS = (
    *("Send", "Isend", "Ssend", "Issend", "Bsend", "Ibsend", "Rsend", "Irsend"),
    *("Sendrecv", "Sendrecv_replace", "Isendrecv", "Isendrecv_replace"),
    *("Send_init", "Ssend_init", "Bsend_init", "Rsend_init"),
)
_OBJECT_SENDS = ("send", "isend", "ssend", "issend", "bsend", "ibsend", "sendrecv")
# MPI may buffer a short message, or wait until it is received. Here it always waits.
_WAITING = {"Send": "Ssend", "send": "ssend"}
# All that move data: blocking or not, persistent, among neighbors. One-sided operations are not
# here: this Open MPI makes no windows in a process with threads, as mpi4py's are.
_COLLECTIVE = re.compile(
    "(i?neighbor_|i)?(allgather|allreduce|alltoall|bcast|exscan|gather|reduce|reduce_scatter|scan|"
    "scatter)(v|w|_block)?(_init)?",
    re.IGNORECASE,
)
LATE_SECONDS = 0.02
# What they return is of a plain type again, on which nothing would be recorded.
_CREATIONS = (
    *("Split", "Split_type", "Create", "Create_group", "Create_cart", "Create_graph"),
    *("Create_dist_graph", "Create_dist_graph_adjacent", "Sub"),
)

Method = Callable[..., Any]


class MessageObserver:
    """Takes notes of ``MPI.COMM_WORLD`` and of all communicators that are made of it."""

    def __init__(self, record: Callable[..., None]):
        self.record = record
        self.requests: list[Any] = []
        self.world = MPI.COMM_WORLD.group

    def start(self) -> None:
        """Begin to take notes."""
        # mpi4py declares it final; a later caller must get the observed one.
        vars(MPI)["COMM_WORLD"] = self.observed(MPI.COMM_WORLD)

    def observed(self, communicator: Any) -> Any:
        """Return the communicator with a note taken of each call that moves data."""
        if communicator == MPI.COMM_NULL:
            return communicator
        kind = type(communicator)
        methods = {
            name: self.observed_method(name, getattr(kind, _WAITING.get(name, name)))
            for name in dir(kind)
        }
        observed_methods = {name: method for name, method in methods.items() if method is not None}
        return type(f"Observed{kind.__name__}", (kind,), observed_methods)(communicator)

    def observed_method(self, name: str, method: Method) -> Method | None:
        """Return a communicator's method with a note of each call; None where it needs none."""
        if name in (*_SENDS, *_OBJECT_SENDS):
            return self.send(name, method)
        if name in _CREATIONS:
            return lambda *arguments, **options: self.observed(method(*arguments, **options))
        return self.collective(name, method) if _COLLECTIVE.fullmatch(name) else None

    def send(self, name: str, method: Method) -> Method:
        """Return a method that sends, with a note of to whom, and of how many bytes."""
        signature = inspect.signature(method)
        size_of = size_of_object if name in _OBJECT_SENDS else size_of_buffer

        def call(*arguments: Any, **options: Any) -> Any:
            given = signature.bind(*arguments, **options).arguments
            communicator, data, *_ = given.values()
            # To nobody, or to a rank that there is not: MPI says so.
            if given["dest"] not in range(communicator.size):
                return method(*arguments, **options)
            # Ranks of the world, whatever number they have in the communicator.
            (to,) = communicator.group.Translate_ranks([given["dest"]], self.world)
            self.record("message", name, size_of(data), to=to)
            if MPI.COMM_WORLD.rank % 2:
                # Half of the ranks are late, so that a message that nobody waits for is missed.
                time.sleep(LATE_SECONDS)
            result = method(*arguments, **options)
            if name.lower().startswith("i"):
                self.requests.append(result)
            return result

        return call

    def collective(self, name: str, method: Method) -> Method:
        """Return a collective with a note of each call, and of the bytes that this rank puts in."""
        signature = inspect.signature(method)

        def call(*arguments: Any, **options: Any) -> Any:
            _, *given = signature.bind(*arguments, **options).arguments.values()
            self.record("collective", name, size_put_in(name, given))
            return method(*arguments, **options)

        return call

    def finish(self) -> None:
        """Take a note of how many messages were sent that nothing has waited for."""
        # A request that has been waited for is none any more.
        unfinished = sum(request != MPI.REQUEST_NULL for request in self.requests)
        self.record("note", "unfinished sends", 0, value=unfinished)
        # Where MPI ends with them it may crash, which says nothing of the mistake.
        latest = time.monotonic() + 2
        while not MPI.Request.Testall(self.requests) and time.monotonic() < latest:
            time.sleep(LATE_SECONDS)


def size_put_in(name: str, given: list[Any]) -> int:
    """Return the bytes that this rank puts into an allreduce; 0 for other collectives."""
    if "allreduce" not in name.lower():
        return 0
    if name[0].islower():
        return size_of_object(given[0])
    return size_of_buffer(given[1] if given[0] is MPI.IN_PLACE else given[0])


def size_of_object(data: Any) -> int:
    """Return the bytes of an object; arrays count as their numbers alone, however they travel."""
    parts = data if isinstance(data, list | tuple) else [data]
    sizes = [part.nbytes for part in parts if getattr(part, "ndim", 0)]
    return sum(sizes) if sizes else len(MPI.pickle.dumps(data))


def size_of_buffer(data: Any) -> int:
    """Return the bytes of a buffer, as mpi4py takes it."""
    array, count, kind = parts_of_buffer(data)
    if count is None:
        return MPI.memory(array).nbytes
    size = kind.Get_size() if isinstance(kind, MPI.Datatype) else getattr(array, "itemsize", 1)
    return int(count) * size


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
