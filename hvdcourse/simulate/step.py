"""A step of data-parallel training, event by event: backward pass, Horovod's cycle, allreduces.

All ranks do the same at the same time, so one of them is followed, whatever their number: with
stragglers, the slowest, for which the others wait before the first gradient is sent. What the
background thread does is read from Horovod 0.28.1: `RunLoopOnce` in horovod/common/operations.cc,
and `FuseResponses` in controller.cc. It reduces one bucket after another, and then sleeps for what
is left of its cycle. On GPUs Horovod does a little better: it goes on while NCCL sends.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hvdcourse.errors import BadInput
from hvdcourse.simulate.algorithms import find_algorithm, tree
from hvdcourse.simulate.links import Cluster

MEBIBYTE = 2**20


@dataclass(frozen=True)
class Layer:
    """A layer: the bytes of its gradient, and the seconds of its part of the backward pass."""

    name: str
    bytes: float
    backward: float


@dataclass(frozen=True)
class Horovod:
    """Horovod's settings and costs; the defaults are those of Horovod 0.28.1.

    Args:
        fusion_bytes: `HOROVOD_FUSION_THRESHOLD`; 0 reduces each gradient on its own.
        cycle: seconds from one wake-up to the next, `HOROVOD_CYCLE_TIME`.
        negotiation: seconds in which the ranks agree on what is ready. Without it: what a message
            without content takes through a tree and back.
        fp16: `hvd.Compression.fp16`, half of the bytes; the conversion's time is not counted.
    """

    fusion_bytes: float = 128 * MEBIBYTE
    cycle: float = 1e-3
    negotiation: float | None = None
    fp16: bool = False

    def __post_init__(self) -> None:
        times = {"cycle": self.cycle, "negotiation": self.negotiation or 0.0}
        for name, value in {"fusion_bytes": self.fusion_bytes, **times}.items():
            if not 0 <= value < math.inf:
                raise BadInput(f"{name} must be a number from 0; got {value!r}")


@dataclass(frozen=True)
class Bucket:
    """Gradients that travel together: when they begin to, and when they have arrived.

    Both are seconds from the beginning of the step.
    """

    layers: tuple[str, ...]
    bytes: float
    begun: float
    sent: float


@dataclass(frozen=True)
class Step:
    """What a step takes in seconds, and its events.

    ``compute`` is the forward and the backward pass, and ``exposed`` the communication that hides
    behind neither. ``ready`` tells when each layer's gradient was computed.
    """

    compute: float
    ready: dict[str, float]
    buckets: list[Bucket]

    @property
    def seconds(self) -> float:
        """From the begin of the step until it is computed and the last gradient is there."""
        return max([self.compute, *(bucket.sent for bucket in self.buckets)])

    @property
    def exposed(self) -> float:
        """Seconds in which nothing is computed because gradients are on their way."""
        return self.seconds - self.compute


def fuse(ready: deque[Layer], most: float, scale: float) -> Iterator[list[Layer]]:
    """Take gradients in their order into buckets of at most so many bytes; larger ones go alone."""
    while ready:
        bucket = [ready.popleft()]
        size = scale * bucket[0].bytes
        while ready and size + scale * ready[0].bytes <= most:
            size += scale * ready[0].bytes
            bucket.append(ready.popleft())
        yield bucket


def simulate(
    layers: Sequence[Layer],
    forward: float,
    cluster: Cluster,
    horovod: Horovod | None = None,
    algorithm: str = "ring",
) -> Step:
    """Return one step of data-parallel training.

    Args:
        layers: in the order of the forward pass; the backward pass goes through them in reverse.
        forward: seconds of the forward pass.
        cluster: where the ranks are.
        horovod: its settings.
        algorithm: of the allreduce, one of ``algorithms.ALGORITHMS``.

    Raises:
        BadInput: there is no layer, a number is negative, or there is no such algorithm.
    """
    numbers = [forward, *(n for layer in layers for n in (layer.bytes, layer.backward))]
    if not layers or not all(0 <= number < math.inf for number in numbers):
        raise BadInput("a step needs layers, and seconds and bytes that are numbers from 0")
    horovod = horovod or Horovod()
    backward = list(reversed(layers))
    ends = forward + np.cumsum([layer.backward for layer in backward])
    ready = {layer.name: float(end) for layer, end in zip(backward, ends, strict=True)}
    buckets = []
    if cluster.ranks > 1:
        buckets = list(communicate(backward, ready, cluster, horovod, algorithm))
    return Step(float(ends[-1]), ready, buckets)


def communicate(
    backward: list[Layer],
    ready: dict[str, float],
    cluster: Cluster,
    horovod: Horovod,
    algorithm: str,
) -> Iterator[Bucket]:
    """Yield the buckets that Horovod's background thread makes, one cycle after another."""
    allreduce, scale = find_algorithm(algorithm), 0.5 if horovod.fp16 else 1.0
    negotiation = tree(0, cluster) if horovod.negotiation is None else horovod.negotiation
    period = max(horovod.cycle, negotiation)
    # Where in its cycle the thread is when the first gradient comes is chance; half is the mean.
    wake = ready[backward[0].name] + period / 2
    rest = deque(backward)
    while rest:
        late = ready[rest[0].name] - wake
        if late > 0:
            wake += math.ceil(late / period) * period if period else late
        seen = deque[Layer]()
        while rest and ready[rest[0].name] <= wake:
            seen.append(rest.popleft())
        now = wake + negotiation
        for bucket in fuse(seen, horovod.fusion_bytes, scale):
            size = scale * sum(layer.bytes for layer in bucket)
            begun, now = now, now + allreduce(size, cluster)
            yield Bucket(tuple(layer.name for layer in bucket), size, begun, now)
        wake = max(wake + horovod.cycle, now)


def expected_slowest(seconds: Sequence[float], ranks: int) -> float:
    """Return the expected time of the slowest of so many ranks that draw from measured times.

    The mean of the maximum of N draws with replacement: the i-th smallest of m values is the
    maximum with a probability of (i / m)^N - ((i - 1) / m)^N.
    """
    ordered = np.sort(np.asarray(seconds, float))
    if not len(ordered) or ranks < 1:
        raise BadInput("the slowest rank needs measured seconds, and at least one rank")
    share = np.arange(len(ordered) + 1) / len(ordered)
    return float(ordered @ np.diff(share**ranks))
