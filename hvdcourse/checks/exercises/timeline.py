"""What each step of ``timeline.py`` must find in timelines that the learner has not seen.

They are recordings of real runs, which each check changes by chance: the clock, the speed, the
numbers of the ranks, a third rank, fewer gradients, and a step that hides all that it sends. The
package's own reader says what is in them.
"""

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from hvdcourse.checks.evidence import ObservedRun, Unmet
from hvdcourse.checks.exercise import ALONE, Exercise, Step, Trial
from hvdcourse.paths import NOTEBOOKS
from hvdcourse.timeline.events import (
    BACKWARD,
    FORWARD,
    Event,
    find_spans,
    read_events,
    tensor_names,
)
from hvdcourse.timeline.reading import NEGOTIATION, Timeline, find_delays, read_timeline

RECORDED = [
    NOTEBOOKS / "recorded" / f"timeline_{name}.json.gz"
    for name in ("healthy", "unfused", "straggler")
]
# Some microseconds lie between what the reader and an answer may take for the same moment.
CLOSE_MS = 0.02
CLOSE: dict[str, Any] = {"rtol": 1e-3, "atol": CLOSE_MS}


def trials(folder: Path) -> Iterator[Trial]:
    """Yield one run on 1 rank: the script reads files, and sends nothing."""
    for name, path in zip("abc", random.sample(RECORDED, len(RECORDED)), strict=True):
        events = json.loads(gzip.decompress(path.read_bytes()))
        (folder / f"timeline_{name}.json").write_text(json.dumps(vary(events)))
    yield Trial(hosts=ALONE, arguments={"folder": str(folder)})


def vary(events: list[Event]) -> list[Event]:
    """Return a timeline of another run: another clock, speed, gradients and numbers of ranks."""
    speed, later = random.uniform(0.7, 1.5), random.randrange(10**6)
    numbers = random.sample("012", 3)
    gradients = {event["pid"] for event in events if event.get("name") == NEGOTIATION}
    left_out = random.sample(sorted(gradients), random.randrange(1, 4))
    varied: list[Event] = []
    negotiating: dict[int, int] = {}
    for event in events:
        if event["pid"] in left_out:
            continue
        changed = dict(event)
        if "ts" in event:
            changed["ts"] = round(event["ts"] * speed) + later
        if event["ph"] == "X":
            changed["name"] = numbers[int(event["name"])]
        if event.get("name") == NEGOTIATION:
            negotiating[event["pid"]] = changed["ts"]
        elif event["ph"] == "E" and event["pid"] in negotiating:
            # The third rank is neither the first nor the last.
            begun = negotiating.pop(event["pid"])
            ready = begun + round(random.uniform(0.3, 0.6) * (changed["ts"] - begun))
            third = {"ph": "X", "name": numbers[2], "ts": ready, "pid": event["pid"], "dur": 0}
            varied.append(third)
        varied.append(changed)
    hide_a_step(varied)
    return varied


def hide_a_step(events: list[Event]) -> None:
    """Have a step compute until the next one begins: nothing that it sends is exposed then."""
    passes = [event for event in events if event.get("name") in (FORWARD, BACKWARD)]
    # A forward and a backward pass, a beginning and an end each.
    step = 4 * random.randrange(len(passes) // 4 - 1)
    passes[step + 3]["ts"] = passes[step + 4]["ts"]


def answers(run: ObservedRun) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Yield for each timeline its name, its path, and what the script found in it."""
    for path in sorted(Path(run.arguments["folder"]).glob("*.json")):
        yield path.name, path, run.ranks[0].reported(path.name)


def check_spans(run: ObservedRun) -> None:
    expected = "every span has a start and an end, in milliseconds, from its own two events"
    for name, path, answer in answers(run):
        events = read_events(path)
        numbers = {tensor: number for number, tensor in tensor_names(events).items()}
        right = sorted(
            (span.name, numbers[span.tensor], span.start, span.end) for span in find_spans(events)
        )
        seen = sorted((what, tensor, start, end) for tensor, what, start, end in answer["spans"])
        counts, seen_counts = (Counter(span[0] for span in spans) for spans in (right, seen))
        lines = [
            f"{name}: {seen_counts[what]} spans {what}, and there are {counts[what]}"
            for what in sorted(counts | seen_counts)
            if seen_counts[what] != counts[what]
        ]
        if lines:
            raise Unmet(expected, lines)
        for span, other in zip(right, seen, strict=True):
            if span[1] != other[1] or not np.allclose(span[2:], other[2:], rtol=0, atol=CLOSE_MS):
                line = (
                    f"{name}: your span {span[0]} of tensor {other[1]} goes from {other[2]:.3f} to "
                    f"{other[3]:.3f} ms; in the file it is of tensor {span[1]}, from "
                    f"{span[2]:.3f} to {span[3]:.3f} ms"
                )
                raise Unmet(expected, [line])


def demand_numbers(
    run: ObservedRun,
    measure: str,
    expected: str,
    unit: str,
    known: Callable[[Timeline], dict[str, ArrayLike]],
) -> None:
    """Raise Unmet unless the script found these numbers, one a step, in each timeline.

    ``known`` returns by name what an answer may be: first the right one, then mistakes.
    """
    lines: list[str] = []
    possible: set[str] | None = None
    for name, path, answer in answers(run):
        (_, right), *mistakes = known(read_timeline(path)).items()
        seen, right = np.array(answer[measure], float), np.array(right)
        if len(seen) != len(right):
            raise Unmet(expected, [f"{name}: {len(seen)} numbers for {len(right)} training steps"])
        met = np.isclose(seen, right, **CLOSE)
        if not met.all():
            step = int(np.argmin(met))
            lines.append(
                f"{name}, step {step + 1}: you have {seen[step]:.2f}{unit}; it should be "
                f"{right[step]:.2f}{unit}"
            )
        alike = {mistake for mistake, wrong in mistakes if np.allclose(seen, wrong, **CLOSE)}
        possible = alike if possible is None else possible & alike
    if lines:
        # One timeline alone can be right by chance, or look like another mistake.
        raise Unmet(expected, [*lines, *(f"that is {mistake}" for mistake in possible or ())])


def check_negotiation(run: ObservedRun) -> None:
    def known(timeline: Timeline) -> dict[str, ArrayLike]:
        def by_step(begin: str, end: str) -> pd.api.typing.SeriesGroupBy:
            rows = timeline.gradients
            return (rows[end] - rows[begin]).groupby(rows["step"])

        right, durations = timeline.steps["negotiation_ms"], by_step("first_ready", "negotiated")
        return {
            "right": right,
            "the sum over the gradients": durations.sum(),
            "the longest negotiation": durations.max(),
            "the time until the gradient was averaged": by_step("first_ready", "done").mean(),
            "the sending": by_step("sending", "sent").mean(),
            "in seconds": right / 1000,
        }

    demand_numbers(
        run,
        "negotiation",
        "the negotiation of a step is the mean duration of its NEGOTIATE_ALLREDUCE spans",
        " ms",
        known,
    )


def check_fusion(run: ObservedRun) -> None:
    def known(timeline: Timeline) -> dict[str, ArrayLike]:
        steps = timeline.steps
        return {
            "right": steps["fusion_ratio"],
            "what every step has without fusion": [1.0] * len(steps),
            "the number of allreduces": steps["allreduces"],
            "the number of gradients": steps["gradients"],
            "the inverse of the ratio": 1 / steps["fusion_ratio"],
        }

    demand_numbers(
        run,
        "fusion_ratio",
        "the fusion ratio of a step is its gradients divided by its allreduces; gradients whose "
        "GLOO_ALLREDUCE spans overlap share one",
        "",
        known,
    )


def check_exposed(run: ObservedRun) -> None:
    def known(timeline: Timeline) -> dict[str, ArrayLike]:
        steps = timeline.steps
        first = timeline.gradients.groupby("step")["sending"].min().to_numpy()
        return {
            "right": steps["exposed_ms"],
            "all of the sending, also what is hidden behind the backward pass": steps["sending_ms"],
            "counted from the start of the backward pass": steps["end"] - steps["backward"],
            "counted from the first allreduce": steps["end"] - first,
            "counted from the start of the forward pass": steps["end"] - steps["forward"],
            "0: nothing exposed": [0.0] * len(steps),
        }

    demand_numbers(
        run,
        "exposed",
        "a step's communication is exposed from the end of BACKWARD to the end of its last "
        "ALLREDUCE",
        " ms",
        known,
    )


def check_straggler(run: ObservedRun) -> None:
    expected = (
        "the straggler of a step is the rank with the largest delay; its delay is how much later "
        "it was ready than the rank that was first for that gradient, as a mean over the gradients"
    )
    for name, path, answer in answers(run):
        steps = [rows for _, rows in read_timeline(path).gradients.groupby("step")]
        if len(answer["stragglers"]) != len(steps):
            line = f"{name}: {len(answer['stragglers'])} stragglers for {len(steps)} training steps"
            raise Unmet(expected, [line])
        for number, ((rank, delay), rows) in enumerate(
            zip(answer["stragglers"], steps, strict=True), start=1
        ):
            delays = find_delays(rows)
            latest, right = int(delays.idxmax()), delays.max()
            where = f"{name}, step {number}"
            if not np.isclose(delays.get(rank, np.nan), right, **CLOSE):
                line = f"{where}: you name rank {rank}; it is rank {latest}, {right:.2f} ms late"
                raise Unmet(expected, [line])
            if not np.isclose(delay, right, **CLOSE):
                line = (
                    f"{where}: rank {rank} is right, but it is late by {right:.2f} ms, not by "
                    f"{delay:.2f} ms"
                )
                raise Unmet(expected, [line])


STEPS = (
    Step(number=1, title="Every span is found", check=check_spans),
    Step(number=2, title="The negotiation", check=check_negotiation),
    Step(number=3, title="The fusion ratio", check=check_fusion),
    Step(number=4, title="The exposed communication", check=check_exposed),
    Step(number=5, title="The straggler", check=check_straggler),
)

EXERCISE = Exercise(
    name="timeline",
    notebook="05_performance",
    trials=trials,
    steps=STEPS,
)
