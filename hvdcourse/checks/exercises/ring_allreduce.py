"""What each step of ``ring_allreduce.py`` must make true, on several numbers of ranks."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import ObservedRun, Unmet, counted, demand
from hvdcourse.checks.exercise import Exercise, Step, Trial
from hvdcourse.checks.exercises.collective_results import close, in_short

BYTES_A_NUMBER = 8


# Those that 5 ranks share in chunks which differ by more than 1, where the last chunk takes what is
# left over (of 2 and more), and also where all others are rounded up (of 3 and less). Seven times
# a seventh of them, in floating point, is too small: rounded down, the last number is lost.
SHORT_LENGTHS = (122, 237)
# 2 ranks' chunks have 2**19 numbers, and 1 more: who sends pieces may need one more for it.
LONG_LENGTH = 2**20 + 1


def arguments() -> dict[str, Any]:
    """Return lengths not a multiple of, shorter than, and much larger than the number of ranks.

    A verdict tells of the first that is wrong: of empty chunks only where all others are right.
    """
    return {"lengths": f"{random.choice(SHORT_LENGTHS)},1,{LONG_LENGTH}"}


def lengths(run: ObservedRun) -> list[int]:
    return [int(length) for length in run.arguments["lengths"].split(",")]


def by_length(run: ObservedRun, *names: str) -> Iterator[tuple[int, list[list[np.ndarray]]]]:
    """Yield each length with, for each name, every rank's value. Raises Unmet where one misses."""
    for case, length in enumerate(lengths(run)):
        columns = []
        for name in names:
            dimensions = 2 if name.startswith("bounds") else 1
            by_rank = [rank.all_numbers(name, dimensions) for rank in run.ranks]
            for rank, values in enumerate(by_rank):
                if len(values) != len(lengths(run)):
                    lines = [f"rank {rank}: reported it {len(values)} times"]
                    raise Unmet(f"{name!r} is reported once for each of the vectors", lines)
            columns.append([values[case] for values in by_rank])
        yield length, columns


def chunk_of_each_position(bounds: np.ndarray, length: int) -> np.ndarray:
    """Return the chunk of every position in a vector that the script's ``sample`` reports."""
    sampled = np.arange(length)[:: max(1, length // 1000)]
    return np.searchsorted(bounds[:, 1], sampled, side="right")


def check_bounds(run: ObservedRun) -> None:
    for name, count in (("bounds", run.np), ("bounds for 7 ranks", 7)):
        for length, (bounds,) in by_length(run, name):
            demand(
                "each chunk has a start and an end",
                [of_rank.shape[1] == 2 for of_rank in bounds],
                [f"the bounds of a chunk are {in_short(of_rank[0])}" for of_rank in bounds],
            )
            demand(
                f"for {counted(count, 'rank')}, {counted(count, 'chunk')} hold all of "
                f"{counted(length, 'number')} without gaps, and differ in length by at most 1",
                [are_equal_chunks(of_rank, count, length) for of_rank in bounds],
                [bounds_in_words(of_rank, count, length) for of_rank in bounds],
            )


def are_equal_chunks(bounds: np.ndarray, count: int, length: int) -> bool:
    """Whether these bounds cut a vector of this length into so many equal chunks."""
    sizes = bounds[:, 1] - bounds[:, 0]
    covers = bounds[0, 0] == 0 and bounds[-1, 1] == length
    joined = np.array_equal(bounds[1:, 0], bounds[:-1, 1])
    even = sizes.min() >= 0 and sizes.max() - sizes.min() <= 1
    return bool(len(bounds) == count and covers and joined and even)


def bounds_in_words(bounds: np.ndarray, count: int, length: int) -> str:
    """Say what is wrong with the bounds of the chunks, or how long the chunks are."""
    if len(bounds) != count:
        return f"has {counted(len(bounds), 'chunk')}"
    starts, ends = bounds.astype(int).T
    for chunk, (end, start) in enumerate(zip(ends, starts[1:], strict=False)):
        if end != start:
            return f"chunk {chunk} ends at {end}, and chunk {chunk + 1} starts at {start}"
    if (starts[0], ends[-1]) != (0, length):
        return f"the chunks go from {starts[0]} to {ends[-1]}"
    return f"the chunks have {', '.join(map(str, ends - starts))} numbers"


def check_exchange(run: ObservedRun) -> None:
    outgoing, incoming = run.numbers("outgoing"), run.numbers("incoming")
    demand(
        "every rank receives what the rank before it has sent",
        [close(incoming[rank], outgoing[rank - 1]) for rank in range(run.np)],
        [
            f"received {received_in_words(numbers, outgoing, rank)}"
            for rank, numbers in enumerate(incoming)
        ],
    )
    unfinished = [sum(rank.notes("unfinished sends")) for rank in run.ranks]
    demand(
        "a rank goes on when its message is sent",
        [count == 0 for count in unfinished],
        [f"never waited for {counted(count, 'message')} to be sent" for count in unfinished],
    )


def received_in_words(numbers: np.ndarray, sent: list[np.ndarray], rank: int) -> str:
    """Say whose numbers a rank has received."""
    if not numbers.any():
        return "nothing: the buffer still holds its zeros"
    senders = [other for other, of_rank in enumerate(sent) if close(numbers, of_rank)]
    if not senders:
        return f"{in_short(numbers)}, which no rank has sent"
    return "its own numbers" if rank in senders else f"those of rank {senders[0]}"


def finished(
    length: int, vectors: list[np.ndarray], bounds: np.ndarray, scattered: list[np.ndarray]
) -> np.ndarray:
    """Return, by rank and chunk, whether the rank holds the finished sum of the chunk."""
    total, chunk = np.sum(vectors, axis=0), chunk_of_each_position(bounds, length)
    size = len(scattered)
    return np.array(
        [
            [np.array_equal(vector[chunk == k], total[chunk == k]) for k in range(size)]
            for vector in scattered
        ]
    )


def check_scatter_reduce(run: ObservedRun) -> None:
    for length, (vectors, bounds, scattered) in by_length(run, "vector", "bounds", "scattered"):
        holds = finished(length, vectors, bounds[0], scattered)
        demand(
            f"for length {length}, rank r holds the sum of chunk (r + 1) % {run.np}",
            [holds[rank, (rank + 1) % run.np] for rank in range(run.np)],
            [
                f"holds {chunks_in_words(chunks)}; that of chunk {(rank + 1) % run.np} is missing"
                if not chunks[(rank + 1) % run.np]
                else f"holds {chunks_in_words(chunks)}"
                for rank, chunks in enumerate(holds)
            ],
        )
    check_traffic(run, "bounds", "scattered")


def chunks_in_words(finished: np.ndarray) -> str:
    """Say of which chunks there is a finished sum."""
    numbers = " and ".join(map(str, np.flatnonzero(finished)))
    return f"the finished sum of chunk {numbers}" if numbers else "no finished sum"


def check_allgather(run: ObservedRun) -> None:
    names = ("bounds", "scattered", "reduced")
    for length, (bounds, scattered, reduced) in by_length(run, *names):
        chunk = chunk_of_each_position(bounds[0], length)
        # What rank k - 1 held as chunk k must reach everyone, whether or not step 3 is done.
        owner = (chunk - 1) % run.np
        expected = np.array(scattered)[owner, np.arange(len(chunk))]
        demand(
            f"for length {length}, every rank ends with all finished chunks",
            [np.array_equal(vector, expected) for vector in reduced],
            [unfinished_in_words(vector, expected, chunk) for vector in reduced],
        )
    check_traffic(run, "scattered", "reduced")


def unfinished_in_words(vector: np.ndarray, expected: np.ndarray, chunk: np.ndarray) -> str:
    """Say which chunks of a vector are not what the rank that finished them had."""
    if len(vector) != len(expected):
        return f"has {len(vector)} numbers instead of {len(expected)}"
    wrong = [str(number) for number in np.unique(chunk[vector != expected])]
    if not wrong:
        return "has all finished chunks"
    return f"not finished: {'chunk' if len(wrong) == 1 else 'chunks'} {' and '.join(wrong)}"


def check_traffic(run: ObservedRun, since: str, before: str) -> None:
    """Demand that each rank sent its neighbor all chunks but one, without MPI's collectives."""
    for case, (length, (bounds,)) in enumerate(by_length(run, "bounds")):
        sizes = bounds[0][:, 1] - bounds[0][:, 0]
        # Which chunk a rank leaves out depends on its place in the ring.
        least, most = ((length - int(size)) * BYTES_A_NUMBER for size in (sizes.max(), sizes.min()))
        met, lines = [], []
        for rank in run.ranks:
            messages = rank.communicated(since, before, "message")[case]
            collectives = rank.communicated(since, before, "collective")[case]
            sent = sum(message["bytes"] for message in messages)
            neighbor = (rank.rank + 1) % run.np
            astray = sorted({message["to"] for message in messages} - {neighbor})
            names = [call["collective"] for call in collectives]
            met.append(least <= sent <= most and not astray and not names)
            lines.append(traffic_in_words(sent, len(messages), astray, names))
        amount = f"{most} bytes" if least == most else f"between {least} and {most} bytes"
        demand(
            f"for length {length}, each rank sends {amount}, only to its neighbor, and calls no "
            "collective",
            met,
            lines,
        )


def traffic_in_words(sent: int, messages: int, astray: list[int], collectives: list[str]) -> str:
    """Say what a rank sent, to which other ranks than its neighbor, and what it called."""
    others = f", some to rank {' and '.join(map(str, astray))}" if astray else ""
    called = ", ".join(dict.fromkeys(collectives)) or "no collective"
    return f"sent {sent} bytes in {counted(messages, 'message')}{others}, and called {called}"


STEPS = (
    Step(number=1, title="The vector is cut into equal chunks", check=check_bounds),
    Step(number=2, title="Neighbors exchange without deadlock", check=check_exchange),
    Step(
        number=3,
        title="Scatter-reduce leaves one finished chunk on each rank",
        check=check_scatter_reduce,
    ),
    Step(number=4, title="Allgather gives every rank all chunks", check=check_allgather),
)

EXERCISE = Exercise(
    name="ring_allreduce",
    notebook="01_mpi_concepts",
    backend="mpi",
    observe="mpi4py",
    trials=lambda _: [Trial(hosts=(ranks,), arguments=arguments()) for ranks in (2, 3, 5, 1)],
    steps=STEPS,
    # Ranks that wait over MPI use their cores, so that only the time tells of a deadlock.
    longest_run=0.25,
)
