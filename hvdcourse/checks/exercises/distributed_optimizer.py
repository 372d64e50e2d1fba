"""What each step of ``distributed_optimizer.py`` must make true, on 3 ranks and on one."""

from collections.abc import Callable, Sequence

import numpy as np

from hvdcourse.checks.evidence import ObservedRun, demand, percent
from hvdcourse.checks.exercise import ALONE, Exercise, Step, Trial
from hvdcourse.checks.exercises.optimizer_settings import RANKS, Setting, arguments
from hvdcourse.checks.exercises.optimizer_trainings import (
    SHARE_WITH_FEEDBACK,
    TOLERANCE,
    Training,
    distance_from_single_process,
    lost_of_another_bucket,
    rounding_alone,
    trainings,
    what_was_trained,
)

# Seconds and bytes are computed, so that they differ by rounding alone.
SAME_SECONDS = 1e-9


def demand_mean(run: ObservedRun, way: str) -> None:
    """Demand the weights of one process that has all samples."""
    setting, trained = Setting.of(run), trainings(run, way)
    demand(
        f"trained {way!r}, every rank has the weights of a single process with all samples",
        [
            distance_from_single_process(training.weights, setting) <= TOLERANCE
            for training in trained
        ],
        [describe(training, rank, setting) for rank, training in enumerate(trained)],
    )


def describe(training: Training, rank: int, setting: Setting) -> str:
    """Say which weights a rank has, and which of its messages it did not wait for."""
    forgotten = training.step["forgotten"]
    unwaited = f"; it did not wait for {forgotten} of its messages" if forgotten else ""
    return what_was_trained(training.weights, rank, setting) + unwaited


def demand_messages(
    run: ObservedRun, way: str, expected: str, right: Callable[[list[int]], bool]
) -> None:
    """Demand that the messages which MPI saw in each step have the right bytes.

    Raises Unmet also where the link did not carry all of them.
    """
    setting, trained = Setting.of(run), trainings(run, way)
    met, lines = [], []
    for training in trained:
        seen = [call["bytes"] for call in training.collectives]
        steps = [list(part) for part in np.array_split(seen, setting.steps)]
        carried = [message["bytes"] for message in training.step["sent"]]
        met.append(all(map(right, steps)) and len(seen) % setting.steps == 0)
        line = f"sent {in_words(steps[-1], len(seen) / setting.steps)}"
        if list(steps[-1]) != carried:
            met[-1] = False
            line += f", of which the link carried {len(carried)}"
        lines.append(line)
    demand(f"trained {way!r}, every rank sends in each step {expected}", met, lines)


def in_words(sizes: Sequence[int], count: float) -> str:
    """Say how many messages with how many bytes there were in a step."""
    messages = f"{count:g} message" + ("s" if count != 1 else "")
    return f"{messages} of {', '.join(map(str, sizes))} bytes" if len(sizes) else messages


def demand_seconds(run: ObservedRun, way: str, seconds: float, below: float, than: str) -> None:
    """Demand the seconds of the formula, which are below those of another way."""
    steps = [training.step for training in trainings(run, way)]
    demand(
        f"trained {way!r}, a step takes {milliseconds(seconds)}, less than the "
        f"{milliseconds(below)} {than}",
        [
            abs(step["seconds"] - seconds) <= SAME_SECONDS and step["seconds"] < below
            for step in steps
        ],
        [
            f"took {milliseconds(step['seconds'])}, "
            f"{milliseconds(step['computed'])} of them to compute"
            for step in steps
        ],
    )


def milliseconds(seconds: float) -> str:
    """Return seconds as text in milliseconds."""
    return f"{1e3 * seconds:.3f} ms"


def check_each(run: ObservedRun) -> None:
    demand_mean(run, "each")
    if run.np == 1:
        return
    sizes = list(Setting.of(run).network().sizes.values())
    demand_messages(
        run,
        "each",
        f"{len(sizes)} messages, one for each gradient",
        lambda sent: sorted(sent) == sorted(sizes),
    )


def check_flat(run: ObservedRun) -> None:
    demand_mean(run, "flat")
    if run.np == 1:
        return
    setting = Setting.of(run)
    sizes = list(setting.network().sizes.values())
    demand_messages(
        run, "flat", f"1 message of {sum(sizes)} bytes", lambda sent: sent == [sum(sizes)]
    )
    demand_seconds(
        run, "flat", setting.seconds([sum(sizes)]), setting.seconds(sizes), "of a message each"
    )


def planned(run: ObservedRun) -> list[list[list[str]]]:
    """Return each rank's buckets, as it reported them."""
    return [
        [[str(name) for name in bucket] for bucket in buckets]
        for buckets in run.reported("buckets")
    ]


def check_buckets(run: ObservedRun) -> None:
    setting = Setting.of(run)
    sizes, order = setting.network().sizes, list(setting.ready)
    fewest = len(setting.buckets())
    by_rank = planned(run)
    demand(
        "each gradient is in one bucket, and all stand in the order in which they become ready: "
        f"{order[0]}, {order[1]}, …, {order[-1]}",
        [[name for bucket in buckets for name in bucket] == order for buckets in by_rank],
        [f"its buckets are {brief(buckets)}" for buckets in by_rank],
    )
    filled = [[sum(sizes[name] for name in bucket) for bucket in buckets] for buckets in by_rank]
    demand(
        f"{fewest} buckets hold all gradients, none with more than {setting.limit} bytes, unless a "
        "single gradient is larger",
        [
            len(buckets) == fewest
            and all(
                size <= setting.limit or len(bucket) == 1
                for size, bucket in zip(full, buckets, strict=True)
            )
            for full, buckets in zip(filled, by_rank, strict=True)
        ],
        [f"has {len(full)} buckets of {', '.join(map(str, full))} bytes" for full in filled],
    )
    demand_mean(run, "buckets")
    if run.np == 1:
        return
    expected = filled[0]
    demand_messages(run, "buckets", f"{fewest} messages, one for each bucket", expected.__eq__)
    each = setting.seconds(sizes.values())
    demand_seconds(run, "buckets", setting.seconds(expected), each, "of a message each")


def brief(buckets: list[list[str]]) -> str:
    """Return the first names of the first buckets as text."""
    shown = [", ".join(bucket[:3]) + (", …" if len(bucket) > 3 else "") for bucket in buckets[:2]]
    return " | ".join(shown) + (" | …" if len(buckets) > 2 else "")


def check_overlapped(run: ObservedRun) -> None:
    demand_compressed(run)
    demand_mean(run, "overlapped")
    if run.np > 1:
        setting = Setting.of(run)
        flat = setting.seconds([sum(setting.network().sizes.values())])
        demand_overlap(run, "overlapped", 1, flat, "of one flat buffer")


def demand_compressed(run: ObservedRun) -> None:
    """Demand that each bucket went through ``compress`` in each step, with its number."""
    numbers, steps = list(range(len(planned(run)[0]))), Setting.of(run).steps
    called = [
        [entry["value"] for entry in rank.entries if entry.get("report") == "compressed"]
        for rank in run.ranks
    ]
    demand(
        "trained 'overlapped', every rank calls compress in each step once for each bucket, with "
        f"the bucket's number: {', '.join(map(str, numbers))}",
        [of_rank == numbers * steps for of_rank in called],
        [
            f"compress was called with {', '.join(map(str, of_rank[: len(numbers)]))} first, and "
            f"{len(of_rank) / steps:g} times in a step"
            if of_rank
            else "compress was never called"
            for of_rank in called
        ],
    )


def demand_overlap(run: ObservedRun, way: str, divided: int, below: float, than: str) -> None:
    """Demand that each bucket leaves when it is ready, with its bytes divided by a number."""
    setting, buckets = Setting.of(run), planned(run)[0]
    sizes = setting.network().sizes
    ready = [max(setting.ready[name] for name in bucket) for bucket in buckets]
    full = [sum(sizes[name] for name in bucket) // divided for bucket in buckets]
    expected = f"{len(full)} messages, one for each bucket, of {', '.join(map(str, full))} bytes"
    demand_messages(run, way, expected, lambda sent: sorted(sent) == sorted(full))
    left = [
        [message["started"] for message in training.step["sent"]]
        for training in trainings(run, way)
    ]
    off = [np.abs(np.subtract(of_rank, ready)) > SAME_SECONDS for of_rank in left]
    first = [int(np.argmax(of_rank)) for of_rank in off]
    demand(
        f"trained {way!r}, every bucket leaves when its last gradient is ready",
        [not of_rank.any() for of_rank in off],
        [
            f"bucket {number} left after {milliseconds(of_rank[number])}, and its last gradient is "
            f"ready after {milliseconds(ready[number])}"
            for number, of_rank in zip(first, left, strict=True)
        ],
    )
    demand_seconds(run, way, setting.overlapped(full, ready), below, than)


def check_error_feedback(run: ObservedRun) -> None:
    setting = Setting.of(run)
    alone = rounding_alone(setting)
    trained = trainings(run, "fp16")
    away = [distance_from_single_process(training.weights, setting) for training in trained]
    demand(
        "trained 'fp16', every rank's weights are off by at most "
        f"{percent(SHARE_WITH_FEEDBACK * alone)} of the way they go: half of what they are "
        "off by where nothing is kept",
        [share <= SHARE_WITH_FEEDBACK * alone for share in away],
        [
            describe(training, rank, setting) + lost_of_another_bucket(training.weights, setting)
            for rank, training in enumerate(trained)
        ],
    )
    if run.np > 1:
        buckets, sizes = planned(run)[0], setting.network().sizes
        full = [sum(sizes[name] for name in bucket) for bucket in buckets]
        ready = [max(setting.ready[name] for name in bucket) for bucket in buckets]
        demand_overlap(run, "fp16", 2, setting.overlapped(full, ready), "of 32 bits")


STEPS = (
    Step(number=1, title="Every gradient is averaged in an allreduce of its own", check=check_each),
    Step(number=2, title="One flat buffer carries all gradients", check=check_flat),
    Step(
        number=3,
        title="Buckets of bounded size stand in the order of the backward pass",
        check=check_buckets,
    ),
    Step(number=4, title="Buckets travel while the backward pass goes on", check=check_overlapped),
    Step(
        number=5,
        title="16 bits travel, and what rounding lost follows in the next step",
        check=check_error_feedback,
    ),
)

EXERCISE = Exercise(
    name="distributed_optimizer",
    notebook="05_performance",
    backend="mpi",
    observe="mpi4py",
    trials=lambda _: [
        Trial(hosts=(RANKS,), arguments=arguments()),
        # Every gradient is larger than a bucket, also the first.
        Trial(hosts=ALONE, arguments=arguments() | {"bucket_bytes": 4}),
    ],
    steps=STEPS,
)
