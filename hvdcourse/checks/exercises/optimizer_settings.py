"""The settings that ``distributed_optimizer.py`` is checked with, and what a step takes in each."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

from hvdcourse.checks.evidence import ObservedRun
from hvdcourse.simulate.algorithms import ring
from hvdcourse.simulate.links import Link, flat
from hvdcourse.training.layered import LayeredNetwork

RANKS = 3


@dataclass(frozen=True)
class Setting:
    """The arguments of a run, in seconds and bytes a second, and its number of ranks."""

    widths: tuple[int, ...]
    layer_seconds: float
    latency: float
    bandwidth: float
    limit: int
    samples: int
    steps: int
    learning_rate: float
    seed: int
    ranks: int

    @classmethod
    def of(cls, run: ObservedRun) -> "Setting":
        """Return the setting of a run."""
        return cls.from_arguments(run.arguments, run.np)

    @classmethod
    def from_arguments(cls, arguments: dict[str, Any], ranks: int) -> "Setting":
        """Return the setting that the script's arguments describe."""
        return cls(
            widths=tuple(int(width) for width in arguments["widths"].split(",")),
            layer_seconds=arguments["layer_ms"] / 1e3,
            latency=arguments["latency_us"] / 1e6,
            bandwidth=arguments["mbit"] * 1e6 / 8,
            limit=arguments["bucket_bytes"],
            **{name: arguments[name] for name in ("samples", "steps", "learning_rate", "seed")},
            ranks=ranks,
        )

    def network(self) -> LayeredNetwork:
        """Return the network as it is before the training."""
        return LayeredNetwork(list(self.widths), self.seed)

    @property
    def ready(self) -> dict[str, float]:
        """When each gradient is ready, by name, in this order; seconds since the step began."""
        names, layers = list(reversed(self.network().sizes)), len(self.widths) - 1
        forward = layers * self.layer_seconds / 2
        return {
            name: forward + (place // 2 + 1) * self.layer_seconds
            for place, name in enumerate(names)
        }

    @property
    def computed(self) -> float:
        """The seconds of the forward and the backward pass."""
        return max(self.ready.values())

    def travels(self, size: int) -> float:
        """Return the seconds that a message of so many bytes travels."""
        return ring(size, flat(self.ranks, Link(self.latency, self.bandwidth)))

    def seconds(self, sizes: Iterable[int]) -> float:
        """Return the seconds of a step whose messages have these bytes, without overlap."""
        return self.computed + sum(map(self.travels, sizes))

    def overlapped(self, sizes: Iterable[int], ready: Iterable[float]) -> float:
        """Return the seconds of a step whose messages leave when they are ready, one by one."""
        end = 0.0
        for size, since in zip(sizes, ready, strict=True):
            end = max(end, since) + self.travels(size)
        return max(end, self.computed)

    def buckets(self) -> list[list[str]]:
        """Return as few buckets as the limit allows, in the order in which gradients are ready."""
        sizes, buckets, free = self.network().sizes, list[list[str]](), 0
        for name in self.ready:
            if sizes[name] > free:
                buckets.append([])
                free = self.limit
            buckets[-1].append(name)
            free -= sizes[name]
        return buckets


def arguments() -> dict[str, Any]:
    """Return arguments for one run, drawn until each step is faster than those it is compared with.

    Two kernels, and no other two buckets, have the same size: a script that tells buckets apart by
    their lengths takes one for the other. Both are larger than a bucket, and no width can be shared
    by 2 or 3 ranks. One bucket is full to its last byte: a script that closes it a gradient earlier
    needs more buckets. Another one is not full: a script that closes it a gradient later exceeds
    the limit.
    """
    while True:
        drawn = draw()
        setting = Setting.from_arguments(drawn, RANKS)
        sizes = setting.network().sizes
        buckets = [sum(sizes[name] for name in bucket) for bucket in setting.buckets()]
        ready = [setting.ready[bucket[-1]] for bucket in setting.buckets()]
        seconds = [
            setting.seconds(sizes.values()),
            setting.seconds(buckets),
            setting.overlapped(buckets, ready),
            setting.overlapped([size // 2 for size in buckets], ready),
        ]
        falls = all(more > 1.02 * less for more, less in pairwise(seconds))
        overlap_pays = setting.seconds([sum(buckets)]) > 1.02 * seconds[2]
        members = [len(bucket) for bucket in setting.buckets()]
        fits = len(replace(setting, limit=setting.limit - 1).buckets()) > len(buckets)
        has_room = any(size < setting.limit for size in buckets[:-1])
        few = 3 <= len(buckets) <= len(sizes) - 3 and 3 in members
        two_alike = len(set(buckets)) == len(buckets) - 1
        if fits and has_room and few and falls and overlap_pays and two_alike:
            return drawn


def draw() -> dict[str, Any]:
    """Return arguments for one run: layers, link, buckets and samples by chance."""
    width = random.choice([41, 43, 47, 49])
    layers = random.choice([5, 6])
    widths = [random.choice([11, 13, 17, 19, 23, 25]) for _ in range(layers + 1)]
    place = random.randrange(1, layers - 2)
    widths[place : place + 3] = [width, width - 6, width]
    sizes = [4 * count * b for a, b in pairwise(widths) for count in (a, 1)]
    places = combinations(range(len(sizes) + 1), 2)
    limits = [
        limit
        for limit in (sum(sizes[start:end]) for start, end in places)
        if 2500 < limit < 4 * width * (width - 6)
    ]
    if not limits:  # All other layers are too narrow.
        return draw()
    layer_ms = round(random.uniform(1, 3), 2)
    # The bytes of one step travel about as long as the backward pass takes.
    travel_ms = layers * layer_ms * random.uniform(0.6, 1.2)
    return {
        "widths": ",".join(map(str, widths)),
        "layer_ms": layer_ms,
        "latency_us": round(random.uniform(0.01, 0.03) * travel_ms * 1000 / 4),
        "mbit": round(2 * (RANKS - 1) / RANKS * sum(sizes) * 8 / travel_ms / 1e3, 3),
        "bucket_bytes": random.choice(limits),
        "samples": random.randrange(5, 9),
        "steps": 20,
        "learning_rate": 0.1,
        "seed": random.randrange(1, 10_000),
    }
