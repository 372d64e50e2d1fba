"""A link that is not there: real messages over MPI, with the seconds that a formula gives them.

A clock that is advanced instead of read makes the seconds the same on every machine, busy or not.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from hvdcourse.errors import BadInput
from hvdcourse.simulate.algorithms import ring
from hvdcourse.simulate.links import Link, flat

NUMBERS = (np.float16, np.float32, np.float64)


@dataclass(frozen=True)
class Sent:
    """One message of a step: its bytes, and when it was started and finished, in seconds."""

    bytes: int
    started: float
    finished: float


@dataclass(frozen=True)
class LinkStep:
    """One step on the link: seconds in all, those of computing, and the messages in their order.

    ``forgotten`` are messages that nobody waited for.
    """

    seconds: float
    computed: float
    sent: tuple[Sent, ...]
    forgotten: int

    @property
    def exposed(self) -> float:
        """The seconds in which the rank only waited for messages."""
        return self.seconds - self.computed

    @property
    def bytes(self) -> int:
        """The bytes that the rank put into all messages."""
        return sum(message.bytes for message in self.sent)


class Message:
    """An allreduce that was started. The sum is in the buffer once ``wait`` has returned."""

    def __init__(self, link: "PretendedLink", buffer: np.ndarray, total: np.ndarray, request: Any):
        self._link, self._buffer, self._total, self._request = link, buffer, total, request
        self.finished = 0.0

    def wait(self) -> None:
        """Wait until the sum over all ranks has replaced the numbers in the buffer."""
        if self in self._link._under_way:
            self._end()
            self._buffer[...] = self._total
            self._link.now = max(self._link.now, self.finished)

    def _end(self) -> None:
        self._request.Wait()
        self._link._under_way.remove(self)


class PretendedLink:
    """Adds up buffers over all ranks, as if a link of this latency and bandwidth joined them.

    Messages really travel, by MPI's ``Iallreduce``. When they arrive is computed: the link carries
    one message at a time, in the order in which they were started. It takes for granted that all
    ranks start the same messages at the same time, as they do where each computes as much.

    Args:
        latency: seconds from one rank to the next.
        bandwidth: bytes a second from one rank to the next.

    Raises:
        BadInput: the latency is below 0, or the bandwidth is not above 0.
    """

    def __init__(self, latency: float, bandwidth: float):
        link = Link(latency, bandwidth)
        from mpi4py import MPI

        self._communicator = MPI.COMM_WORLD
        self.rank, self.size = self._communicator.Get_rank(), self._communicator.Get_size()
        self._cluster = flat(self.size, link)
        self._under_way: list[Message] = []
        self._begin_step()

    def _begin_step(self) -> None:
        self.now = self._computed = self._free = 0.0
        self._sent: list[Sent] = []

    def compute(self, seconds: float) -> None:
        """Let these seconds go by: the rank computes, and messages go on under way."""
        self.now += seconds
        self._computed += seconds

    def allreduce(self, buffer: np.ndarray) -> None:
        """Replace the numbers of a buffer by their sum over all ranks, and return nothing."""
        self.start(buffer).wait()

    def start(self, buffer: np.ndarray) -> Message:
        """Start an allreduce of a buffer and return at once. Leave the buffer alone until then.

        All ranks start the same messages in the same order. On a single rank nothing is sent.

        Raises:
            BadInput: the buffer is no array of numbers of 16, 32 or 64 bits without gaps.
        """
        if not isinstance(buffer, np.ndarray) or buffer.dtype not in NUMBERS:
            kind = getattr(buffer, "dtype", type(buffer).__name__)
            raise BadInput(f"the link carries NumPy arrays of float16, 32 or 64; got {kind}")
        if not buffer.flags.c_contiguous:
            raise BadInput("the buffer has gaps in memory; send np.ascontiguousarray(…) of it")
        total = np.empty_like(buffer)
        if self.size == 1:
            return Message(self, buffer, total, None)
        request = self._communicator.Iallreduce(*_as_mpi_takes_them(buffer, total))
        message = Message(self, buffer, total, request)
        begins = max(self.now, self._free)
        self._free = message.finished = begins + ring(buffer.nbytes, self._cluster)
        self._under_way.append(message)
        self._sent.append(Sent(buffer.nbytes, self.now, self._free))
        return message

    def end_step(self) -> LinkStep:
        """Return what the step took and sent, and set the clock to 0 for the next one.

        Messages that nobody waited for are ended, so that MPI can end, but change no buffer.
        """
        forgotten = len(self._under_way)
        for message in list(self._under_way):
            message._end()
        done = LinkStep(self.now, self._computed, tuple(self._sent), forgotten)
        self._begin_step()
        return done


def _as_mpi_takes_them(buffer: np.ndarray, total: np.ndarray) -> tuple[Any, ...]:
    from mpi4py import MPI

    if buffer.dtype == np.float16:
        # MPI has no numbers of 16 bits to add up; Horovod, too, brings its own sum for them.
        return [buffer, MPI.UINT16_T], [total, MPI.UINT16_T], _sum_of_halves()
    return buffer, total, MPI.SUM


@functools.cache
def _sum_of_halves() -> Any:
    from mpi4py import MPI

    def add(incoming: Any, total: Any, _: Any) -> None:
        np.frombuffer(total, np.float16)[...] += np.frombuffer(incoming, np.float16)

    return MPI.Op.Create(add, commute=True)
