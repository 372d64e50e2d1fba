"""The events in a timeline's file, and the spans between their beginnings and ends."""

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hvdcourse.errors import BadInput
from hvdcourse.files import write_whole

MICROSECONDS_PER_SECOND = 1e6
MICROSECONDS_PER_MILLISECOND = 1e3
# Horovod writes this once, at the head of every timeline.
CLOCK = "start_time_since_epoch_in_micros"
FORWARD, BACKWARD = "FORWARD", "BACKWARD"

Event = dict[str, Any]


@dataclass(frozen=True)
class Span:
    """What was done for one tensor, from ``start`` to ``end``, in milliseconds.

    ``depth`` is 0 for a phase, and 1 for an activity within it. ``arguments`` stood at its end.
    """

    tensor: str
    name: str
    start: float
    end: float
    depth: int = 0
    arguments: dict[str, Any] = field(default_factory=dict)


def read_events(file: str | Path) -> list[Event]:
    """Return the events of a timeline, in the order in which they were written.

    A job that is killed leaves a file that breaks off: the events before that are returned. A name
    that ends in .gz is unpacked.

    Raises:
        BadInput: no such file, or no timeline of Horovod's.
    """
    path = Path(file)
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{path} cannot be read: {error}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is no timeline: a timeline is text, and this is not") from None
    if not text.strip():
        raise BadInput(
            f"{path} is empty: Horovod fills it from time to time; let the job call hvd.shutdown()"
        )
    events = decode(text, path)
    if not any(CLOCK in event.get("args", ()) for event in events):
        raise BadInput(
            f"{path} is a trace, but not of Horovod: its head has no {CLOCK}; Horovod writes its "
            "timeline on rank 0, to the file that HOROVOD_TIMELINE names"
        )
    return events


def decode(text: str, path: Path) -> list[Event]:
    """Return all whole events of a JSON list that may break off. Raises BadInput for others."""
    # As it is, without its end, or with half an event there: Horovod writes one a line.
    for whole in (text, text.rstrip(", \r\n\t") + "]", text[: text.rfind("},\n") + 1] + "]"):
        with suppress(json.JSONDecodeError):
            events = json.loads(whole)
            if isinstance(events, list) and all(isinstance(event, dict) for event in events):
                return events
    raise BadInput(f"{path} is no timeline: a timeline is a JSON list of events")


def milliseconds(event: Event) -> float:
    """Return when an event was, in milliseconds since Horovod started."""
    return event["ts"] / MICROSECONDS_PER_MILLISECOND


def tensor_names(events: Sequence[Event]) -> dict[int, str]:
    """Return the tensor that each number in ``pid`` stands for."""
    named = [event for event in events if event.get("name") == "process_name"]
    return {event["pid"]: event["args"]["name"] for event in named if "name" in event["args"]}


def find_spans(events: Sequence[Event]) -> list[Span]:
    """Return the spans in the order of their ends. What never ended is left out."""
    names = tensor_names(events)
    opened: dict[int, list[Event]] = defaultdict(list)
    spans = []
    for event in events:
        phase, number = event.get("ph"), event.get("pid", 0)
        if phase == "B":
            opened[number].append(event)
        elif phase == "E" and opened[number]:
            begin = opened[number].pop()
            spans.append(
                Span(
                    tensor=names.get(number, ""),
                    name=begin["name"],
                    start=milliseconds(begin),
                    end=milliseconds(event),
                    depth=len(opened[number]),
                    arguments=event.get("args", {}),
                )
            )
    return spans


def add_passes(file: str | Path, passes: Sequence[tuple[float, float, float]]) -> None:
    """Add a training's forward and backward passes to its timeline, as a row of its own.

    Horovod does not know when the network computes. Call this after Horovod was shut down, on the
    rank that wrote the file.

    Args:
        file: the timeline.
        passes: for each step, in seconds since the epoch (``time.time`` or ``tf.timestamp``): when
            the forward pass began, when the backward pass began, and when it ended.

    Raises:
        BadInput: no such file, or no timeline of Horovod's.
    """
    events = read_events(file)
    started = next(event["args"][CLOCK] for event in events if CLOCK in event.get("args", ()))
    number = 1 + max(event.get("pid", 0) for event in events)
    events.append({"name": "process_name", "ph": "M", "pid": number, "args": {"name": "computing"}})
    for forward, backward, end in passes:
        for name, begin, until in ((FORWARD, forward, backward), (BACKWARD, backward, end)):
            for phase, moment in (("B", begin), ("E", until)):
                micros = round(moment * MICROSECONDS_PER_SECOND - started)
                events.append({"ph": phase, "name": name, "ts": micros, "pid": number})
    write_whole(Path(file), "[\n" + ",\n".join(map(json.dumps, events)) + "]\n")
