"""What each step of ``ring_allreduce.py`` must make true, on several numbers of ranks."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from hvdcourse.evidence import ObservedRun, Unmet, demand

BYTES_A_NUMBER = 8


def arguments() -> dict[str, Any]:
    """Return lengths shorter than, not a multiple of, and much larger than the number of ranks."""
    return {"lengths": f"1,{random.randrange(7, 30)},{random.randrange(400_001, 500_000)}"}


def lengths(run: ObservedRun) -> list[int]:
    return [int(length) for length in run.arguments["lengths"].split(",")]


def by_length(run: ObservedRun, *names: str) -> Iterator[tuple[int, list[list[np.ndarray]]]]:
    """Yield each length with, for each name, every rank's value. Raises Unmet where one misses."""
    for case, length in enumerate(lengths(run)):
        columns = []
        for name in names:
            found = [rank.all_found(name) for rank in run.ranks]
            for rank, values in enumerate(found):
                if len(values) != len(lengths(run)):
                    seen = [f"rank {rank}: reported it {len(values)} times"]
                    raise Unmet(f"{name!r} is reported once for each of the vectors", seen)
            columns.append([np.array(values[case]) for values in found])
        yield length, columns


def places(length: int) -> np.ndarray:
    """Return the places of a vector that the script's ``sample`` reports."""
    return np.arange(length)[:: max(1, length // 1000)]


def chunk_of_each_place(bounds: np.ndarray, length: int) -> np.ndarray:
    """Return for every reported place the number of the chunk that it lies in."""
    return np.searchsorted(bounds[:, 1], places(length), side="right")


def check_bounds(run: ObservedRun) -> None:
    for length, (bounds,) in by_length(run, "bounds"):
        met = []
        for mine in bounds:
            sizes = mine[:, 1] - mine[:, 0]
            covers = mine[0, 0] == 0 and mine[-1, 1] == length
            joined = np.array_equal(mine[1:, 0], mine[:-1, 1])
            even = sizes.min() >= 0 and sizes.max() - sizes.min() <= 1
            met.append(len(mine) == run.np and covers and joined and even)
        wanted = (
            f"{run.np} chunks cover 0 to {length} without gaps, and differ by 1 at most in length"
        )
        demand(wanted, met, [mine.tolist() for mine in bounds])


def check_exchange(run: ObservedRun) -> None:
    outgoing, incoming = run.found("outgoing"), run.found("incoming")
    met = [incoming[rank] == outgoing[rank - 1] for rank in range(run.np)]
    seen = [
        f"sent {out[:3]}…, received {came[:3]}…"
        for out, came in zip(outgoing, incoming, strict=True)
    ]
    demand("every rank receives what the rank before it has sent", met, seen)


def finished(length: int, vectors: list, bounds: np.ndarray, scattered: list) -> np.ndarray:
    """Return, by rank and chunk, whether the rank holds the finished sum of the chunk."""
    total, chunk = np.sum(vectors, axis=0), chunk_of_each_place(bounds, length)
    size = len(scattered)
    return np.array(
        [
            [np.array_equal(mine[chunk == k], total[chunk == k]) for k in range(size)]
            for mine in scattered
        ]
    )


def check_scatter_reduce(run: ObservedRun) -> None:
    for length, (vectors, bounds, scattered) in by_length(run, "vector", "bounds", "scattered"):
        holds = finished(length, vectors, bounds[0], scattered)
        met = [holds[rank, (rank + 1) % run.np] for rank in range(run.np)]
        seen = [
            f"holds the finished sums of chunks {np.flatnonzero(mine).tolist()}" for mine in holds
        ]
        demand(f"for length {length}, rank r holds the sum of chunk r + 1", met, seen)
    check_traffic(run, "bounds", "scattered")


def check_allgather(run: ObservedRun) -> None:
    names = ("bounds", "scattered", "reduced")
    for length, (bounds, scattered, reduced) in by_length(run, *names):
        chunk = chunk_of_each_place(bounds[0], length)
        # What rank k - 1 held as chunk k must reach everyone, whether or not step 3 is done.
        owner = (chunk - 1) % run.np
        expected = np.array(scattered)[owner, np.arange(len(chunk))]
        met = [np.array_equal(mine, expected) for mine in reduced]
        right = [int((mine == expected).sum()) for mine in reduced]
        seen = [f"{count} of {len(expected)} places hold their finished sum" for count in right]
        demand(f"for length {length}, every rank ends with all finished chunks", met, seen)
    check_traffic(run, "scattered", "reduced")


def check_traffic(run: ObservedRun, since: str, before: str) -> None:
    """Demand that each rank sent its neighbour all chunks but one, without MPI's collectives."""
    for case, (length, (bounds,)) in enumerate(by_length(run, "bounds")):
        messages = [rank.communicated(since, before, "message")[case] for rank in run.ranks]
        collectives = [rank.communicated(since, before, "collective")[case] for rank in run.ranks]
        sizes = bounds[0][:, 1] - bounds[0][:, 0]
        # Which chunk a rank leaves out depends on its place in the ring.
        least, most = ((length - int(one)) * BYTES_A_NUMBER for one in (sizes.max(), sizes.min()))
        sent = [sum(message["bytes"] for message in mine) for mine in messages]
        astray = [
            sorted({message["to"] for message in mine} - {(rank + 1) % run.np})
            for rank, mine in enumerate(messages)
        ]
        met = [
            least <= number <= most and not others and not used
            for number, others, used in zip(sent, astray, collectives, strict=True)
        ]
        seen = [
            traffic_in_words(number, len(mine), others, [one["collective"] for one in used])
            for number, mine, others, used in zip(sent, messages, astray, collectives, strict=True)
        ]
        bytes_ = f"{most} bytes" if least == most else f"between {least} and {most} bytes"
        wanted = (
            f"for length {length}, each rank sends {bytes_}, to its neighbour alone, and calls no "
            "collective"
        )
        demand(wanted, met, seen)


def traffic_in_words(sent: int, messages: int, astray: list[int], collectives: list[str]) -> str:
    """Say what a rank sent, to which other ranks than its neighbour, and what it called."""
    others = f", some to rank {' and '.join(map(str, astray))}" if astray else ""
    called = ", ".join(dict.fromkeys(collectives)) or "no collective"
    count = f"{messages} message" + ("s" if messages != 1 else "")
    return f"sent {sent} bytes in {count}{others}, and called {called}"


STEPS = (
    (
        1,
        "The vector is cut into equal chunks",
        "Chunk k starts at k * length // size and ends where chunk k + 1 starts.",
        check_bounds,
    ),
    (
        2,
        "Neighbours exchange without deadlock",
        "communicator.Sendrecv(outgoing, dest=…, recvbuf=incoming, source=…) sends and receives at "
        "once. % size closes the ring.",
        check_exchange,
    ),
    (
        3,
        "Scatter-reduce leaves one finished chunk on each rank",
        "In turn t, rank r sends chunk r - t and adds to chunk r - t - 1, both modulo size. "
        "Receive into a buffer as long as the chunk that comes in.",
        check_scatter_reduce,
        (2,),
    ),
    (
        4,
        "Allgather gives every rank all chunks",
        "In turn t, rank r sends chunk r + 1 - t and receives chunk r - t, both modulo size, "
        "straight into the vector.",
        check_allgather,
        (2,),
    ),
)
