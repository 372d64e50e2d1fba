"""Reads a timeline: one row for each gradient of each step, and one for each step."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hvdcourse.errors import BadInput
from hvdcourse.timeline.events import (
    BACKWARD,
    FORWARD,
    Span,
    find_spans,
    milliseconds,
    read_events,
    tensor_names,
)

NEGOTIATION, ALLREDUCE = "NEGOTIATE_ALLREDUCE", "ALLREDUCE"
COPY_IN, COPY_OUT = "MEMCPY_IN_FUSION_BUFFER", "MEMCPY_OUT_FUSION_BUFFER"


@dataclass(frozen=True)
class Timeline:
    """What a timeline tells. All times are in milliseconds since Horovod started.

    ``gradients`` has one row for each gradient of each step, in the order in which they were
    ready: ``step``, ``name``, ``bytes`` (NaN if unknown); ``ready_0``, ``ready_1``, …: when rank 0
    learned that this rank was ready (absent where Horovod's cache of responses was on);
    ``first_ready``, ``negotiated``; ``copying_in``, ``copied_in`` (NaN if it was not fused);
    ``sending``, ``sent``; ``copying_out``, ``copied_out``; ``done``; and ``group``, the number of
    the allreduce in which it traveled.

    ``steps`` has one row for each step: ``forward``, ``backward``, ``computed``: when the passes
    began and when the backward pass ended (NaN without marks, see ``add_passes``); ``end``;
    ``gradients``, ``allreduces``, and ``fusion_ratio``, the first divided by the second;
    ``negotiation_ms``, a mean over gradients; ``sending_ms``, the sum over allreduces;
    ``exposed_ms``, from the end of the backward pass to the end of the last allreduce;
    ``straggler``, the rank that was ready last, and ``delay_ms``, how much later it was than the
    first rank, as a mean over gradients (-1 and NaN where it is unknown).
    """

    gradients: pd.DataFrame
    steps: pd.DataFrame


def read_timeline(file: str | Path) -> Timeline:
    """Read a timeline that Horovod has written; it may break off where the job ended early.

    A step ends where a gradient comes for the second time; what is averaged besides the gradients,
    such as metrics, is left out. Gradients whose sending overlaps
    traveled in one fused allreduce: on CPUs Horovod does one allreduce after the other.

    Raises:
        BadInput: no such file, no timeline of Horovod's, or no allreduce in it.
    """
    events = read_events(file)
    spans = find_spans(events)
    gradients = read_gradients(spans, read_ready_marks(events))
    if not gradients:
        raise BadInput(
            f"{file} has no allreduce from beginning to end: did the job end before its first step?"
        )
    table = pd.DataFrame(gradients).sort_values(["step", "first_ready", "done"])
    steps = [
        measure_step(int(number), rows, spans) for number, rows in table.groupby("step", sort=True)
    ]
    return Timeline(table.reset_index(drop=True), pd.DataFrame(steps))


def read_ready_marks(events: Sequence[dict[str, Any]]) -> dict[str, list[tuple[int, float]]]:
    """Return for each tensor which rank reported when that it was ready."""
    names, marks = tensor_names(events), defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and str(event.get("name")).isdigit():
            marks[names.get(event["pid"], "")].append((int(event["name"]), milliseconds(event)))
    return marks


def read_gradients(
    spans: Sequence[Span], marks: dict[str, list[tuple[int, float]]]
) -> list[dict[str, Any]]:
    """Return one record for each allreduce of a tensor, with its step and its group."""
    # Since a tensor's last allreduce: its negotiation and what was done within the allreduce.
    before: dict[str, dict[str, Span]] = defaultdict(dict)
    gradients: list[dict[str, Any]] = []
    for span in spans:
        known = before[span.tensor]
        if span.depth or span.name == NEGOTIATION:
            kind = "send" if span.name.endswith("_ALLREDUCE") and span.depth else span.name
            known[kind] = span
        elif span.name == ALLREDUCE:
            if {NEGOTIATION, "send"} <= known.keys():
                gradients.append(describe(span, known, marks[span.tensor]))
            del before[span.tensor]
    gradients.sort(key=lambda gradient: gradient["sending"])
    number_steps(gradients)
    names = names_of_gradients(gradients)
    gradients = [gradient for gradient in gradients if gradient["name"] in names]
    number_steps(gradients)
    return gradients


def number_steps(allreduces: list[dict[str, Any]]) -> None:
    """Give each record, in the order of sending, the number of its step and of its group."""
    step, group, latest, seen = 1, 0, -np.inf, set[str]()
    for allreduce in allreduces:
        if allreduce["name"] in seen:
            step, seen = step + 1, set()
        seen.add(allreduce["name"])
        group += allreduce["sending"] >= latest
        latest = max(latest, allreduce["sent"])
        allreduce.update(step=step, group=group)


def names_of_gradients(allreduces: Sequence[dict[str, Any]]) -> set[str]:
    """Return the tensors that come in at least half of the steps.

    Others are averaged now and then, such as the metrics of an epoch, of which some pass for steps
    of their own: what has less than half of the largest step's tensors is none.
    """
    of_step = defaultdict(set)
    for allreduce in allreduces:
        of_step[allreduce["step"]].add(allreduce["name"])
    largest = max(map(len, of_step.values()), default=0)
    steps = [names for names in of_step.values() if 2 * len(names) >= largest]
    times = Counter(name for names in steps for name in names)
    return {name for name, count in times.items() if 2 * count >= len(steps)}


def describe(whole: Span, parts: dict[str, Span], marks: list[tuple[int, float]]) -> dict[str, Any]:
    """Return the record of one gradient's allreduce."""
    negotiation, send = parts[NEGOTIATION], parts["send"]
    copies = {}
    for name, (begin, end) in {
        COPY_IN: ("copying_in", "copied_in"),
        COPY_OUT: ("copying_out", "copied_out"),
    }.items():
        copies[begin], copies[end] = (
            (parts[name].start, parts[name].end) if name in parts else (nan, nan)
        )
    return {
        "step": 0,
        "name": whole.tensor,
        "bytes": count_bytes(whole.arguments),
        "first_ready": negotiation.start,
        **{
            f"ready_{rank}": moment
            for rank, moment in sorted(marks)
            if negotiation.start <= moment <= negotiation.end
        },
        "negotiated": negotiation.end,
        "sending": send.start,
        "sent": send.end,
        **copies,
        "done": whole.end,
        "group": 0,
    }


def count_bytes(arguments: dict[str, Any]) -> float:
    """Return how large a tensor is, or NaN if the timeline does not say it."""
    try:
        # numpy has no bfloat16; it is as long as float16.
        kind = np.dtype(arguments["dtype"].replace("bfloat16", "float16"))
        return prod(json.loads(arguments["shape"])) * kind.itemsize
    except (KeyError, TypeError, ValueError):
        return nan


def measure_step(number: int, rows: pd.DataFrame, spans: Sequence[Span]) -> dict[str, Any]:
    """Return the record of one step."""
    passes = {FORWARD: (nan, nan), BACKWARD: (nan, nan)}
    for span in spans:
        # The passes of this step are the last that began before its first allreduce.
        if span.name in passes and span.start < rows["sending"].min():
            passes[span.name] = (span.start, span.end)
    delays = find_delays(rows)
    known = delays.notna().any()
    computed = passes[BACKWARD][1]
    # Without marks: when rank 0 had its last gradient; with Horovod's cache, when a first rank had.
    own = rows["first_ready"].max()
    if "ready_0" in rows and rows["ready_0"].notna().all():
        own = rows["ready_0"].max()
    end = rows["done"].max()
    groups = rows["group"].nunique()
    return {
        "step": number,
        "forward": passes[FORWARD][0],
        "backward": passes[BACKWARD][0],
        "computed": computed,
        "end": end,
        "gradients": len(rows),
        "allreduces": groups,
        "fusion_ratio": len(rows) / groups,
        "negotiation_ms": (rows["negotiated"] - rows["first_ready"]).mean(),
        "sending_ms": rows.groupby("group").agg({"sending": "min", "sent": "max"})
        .diff(axis=1)["sent"].sum(),
        "exposed_ms": max(0.0, end - (own if np.isnan(computed) else computed)),
        "straggler": int(delays.idxmax()) if known else -1,
        "delay_ms": delays.max() if known else nan,
    }  # fmt: skip


def find_delays(rows: pd.DataFrame) -> pd.Series:
    """Return by rank how much later it was ready than the first rank, as a mean over gradients."""
    columns = [name for name in rows if str(name).startswith("ready_")]
    delays = rows[columns].sub(rows["first_ready"], axis=0).mean()
    return delays.set_axis([int(name.removeprefix("ready_")) for name in columns]).sort_index()
