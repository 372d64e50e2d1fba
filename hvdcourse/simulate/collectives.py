"""What ranks hold before and after a collective, and in every step of the ring allreduce."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# What one rank holds: each value, with the rank that it comes from, or None where ranks were added.
Row = Sequence[tuple[int, int | None]]


@dataclass(frozen=True)
class Collective:
    """What every rank holds before and after a collective, rank by rank, and how it was called."""

    name: str
    call: str
    before: Sequence[Row]
    after: Sequence[Row]


def collective(name: str, ranks: int = 4) -> Collective:
    """Return the collective of this name on numbers that tell which rank they come from."""
    call, run = _COLLECTIVES[name]
    return Collective(name, call.format(root=ranks // 2), *run(ranks))


@dataclass(frozen=True)
class RingState:
    """What ranks hold after a step: ``held[rank, chunk]`` is a sum of ``parts`` ranks' values.

    ``arrived`` names the places, (rank, chunk), where a chunk has come from the rank before.
    """

    title: str
    held: np.ndarray
    parts: np.ndarray
    arrived: frozenset[tuple[int, int]] = frozenset()


def ring_states(ranks: int = 4) -> list[RingState]:
    """Run the ring allreduce and return the state at the start and after each step.

    Rank r begins with (r + 1) (c + 1) as its chunk c.
    """
    numbers = np.arange(1, ranks + 1)
    held = np.outer(numbers, numbers)
    parts = np.ones_like(held)
    states = [RingState("start", held.copy(), parts.copy())]
    for phase in ("scatter-reduce", "allgather"):
        for step in range(ranks - 1):
            sent = (held.copy(), parts.copy())
            arrived = set()
            for rank in range(ranks):
                chunk = (rank - step + (phase == "allgather")) % ranks
                right = (rank + 1) % ranks
                for receiver, sender in zip((held, parts), sent, strict=True):
                    own = receiver[right, chunk] if phase == "scatter-reduce" else 0
                    receiver[right, chunk] = sender[rank, chunk] + own
                arrived.add((right, chunk))
            title = f"{phase} {step + 1}"
            states.append(RingState(title, held.copy(), parts.copy(), frozenset(arrived)))
    return states


def _of_rank(rank: int, values: Sequence[int]) -> Row:
    return [(value, rank) for value in values]


def _summed(values: Sequence[int]) -> Row:
    return [(value, None) for value in values]


Rows = tuple[Sequence[Row], Sequence[Row]]


def _allreduce(ranks: int) -> Rows:
    before = [_of_rank(rank, [rank + 1, 10 * (rank + 1)]) for rank in range(ranks)]
    total = ranks * (ranks + 1) // 2
    return before, [_summed([total, 10 * total])] * ranks


def _allgather(ranks: int) -> Rows:
    # Lengths may differ.
    before = [_of_rank(r, [10 * r + i for i in range(1 + r % 2)]) for r in range(ranks)]
    return before, [[box for boxes in before for box in boxes]] * ranks


def _broadcast(ranks: int) -> Rows:
    before = [_of_rank(rank, [10 * rank + i for i in range(3)]) for rank in range(ranks)]
    return before, [before[ranks // 2]] * ranks


def _alltoall(ranks: int) -> Rows:
    before = [_of_rank(rank, [10 * rank + i for i in range(ranks)]) for rank in range(ranks)]
    return before, [[before[sender][rank] for sender in range(ranks)] for rank in range(ranks)]


def _reducescatter(ranks: int) -> Rows:
    before = [_of_rank(r, [(r + 1) * 10**i for i in range(ranks)]) for r in range(ranks)]
    total = ranks * (ranks + 1) // 2
    return before, [_summed([total * 10**rank]) for rank in range(ranks)]


_COLLECTIVES = {
    "allreduce": ("op = Sum", _allreduce),
    "allgather": ("in rank order", _allgather),
    "broadcast": ("root_rank = {root}", _broadcast),
    "alltoall": ("equal parts", _alltoall),
    "reducescatter": ("op = Sum", _reducescatter),
}
COLLECTIVES = tuple(_COLLECTIVES)
