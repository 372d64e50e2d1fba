"""Right: tables; begins and ends are paired by their depth."""

import argparse
from collections import Counter, defaultdict, namedtuple
from pathlib import Path

import numpy as np
import pandas as pd

from hvdcourse import record
from hvdcourse.timeline.events import read_events

# What was done for the tensor with this number, from `start` to `end`.
Span = namedtuple("Span", "tensor name start end")


def find_spans(events):
    """Return the spans of a timeline as a list, in any order."""
    spans = []
    depth = Counter()
    rows = []
    for event in events:
        if event["ph"] in ("B", "E"):
            depth[event["pid"]] -= event["ph"] == "E"
            rows.append((event["pid"], depth[event["pid"]], event["ts"] / 1000, event.get("name")))
            depth[event["pid"]] += event["ph"] == "B"
    table = pd.DataFrame(rows, columns=["tensor", "depth", "moment", "name"])
    for (tensor, _), group in table.groupby(["tensor", "depth"]):
        begins, ends = group.iloc[::2], group.iloc[1::2]
        spans += map(Span, [tensor] * len(ends), begins["name"], begins["moment"], ends["moment"])
    return spans


def split_steps(spans):
    """Return for each training step its spans by name: what a tensor does again is the next step's.

    Names that tell you something: NEGOTIATE_ALLREDUCE, GLOO_ALLREDUCE (the sending), ALLREDUCE
    (copies and sending), one each for every gradient; FORWARD and BACKWARD, the passes of rank 0.
    """
    steps, times = defaultdict(lambda: defaultdict(list)), Counter()
    for span in sorted(spans, key=lambda span: span.start):
        steps[times[span.tensor, span.name]][span.name].append(span)
        times[span.tensor, span.name] += 1
    return [steps[number] for number in sorted(steps)]


def split_marks(events):
    """Return for each training step {tensor: {rank: when the rank was ready, in milliseconds}}."""
    steps, times = defaultdict(lambda: defaultdict(dict)), Counter()
    for event in events:
        if event["ph"] == "X":
            number = times[event["pid"], event["name"]]
            steps[number][event["pid"]][int(event["name"])] = event["ts"] / 1000
            times[event["pid"], event["name"]] += 1
    return [steps[number] for number in sorted(steps)]


def negotiation(step):
    """Return for how long a gradient was negotiated in this step, as a mean over the gradients."""
    table = pd.DataFrame(step["NEGOTIATE_ALLREDUCE"])
    return (table["end"] - table["start"]).mean()


def fusion_ratio(step):
    """Return how many gradients an allreduce of this step had, as a mean over the allreduces."""
    table = pd.DataFrame(step["GLOO_ALLREDUCE"]).sort_values("start")
    alone = table["start"] >= table["end"].cummax().shift(fill_value=float("-inf"))
    return len(table) / alone.sum()


def exposed(step):
    """Return how long the step still communicates when rank 0 has nothing left to compute."""
    table = pd.DataFrame(step["ALLREDUCE"])
    return max(table["end"].max() - step["BACKWARD"][0].end, 0)


def find_straggler(ready):
    """Return the rank that is late in a step, and by how much.

    ``ready`` is {tensor: {rank: when the rank was ready}}. A rank's delay is how much later it was
    ready than the first rank, as a mean over the tensors.
    """
    table = pd.DataFrame(ready).T
    delays = table.sub(table.min(axis=1), axis=0).mean()
    return int(delays.idxmax()), float(delays.max())


def measure(events):
    """Return what the events of one timeline tell, in lists with a number for each step."""
    spans = find_spans(events)
    steps, ready = split_steps(spans), split_marks(events)
    return {
        "spans": [[span.tensor, span.name, span.start, span.end] for span in spans],
        "negotiation": [negotiation(step) for step in steps],
        "fusion_ratio": [fusion_ratio(step) for step in steps],
        "exposed": [exposed(step) for step in steps],
        "stragglers": [find_straggler(marks) for marks in ready],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True, help="where the timelines are")
    for path in sorted(Path(parser.parse_args().folder).glob("timeline*.json*")):
        measured = measure(read_events(path))
        record(path.name, measured)
        print(f"{path.stem}, medians over {len(measured['exposed'])} steps:")
        for name in ("negotiation", "fusion_ratio", "exposed"):
            print(f"  {name:13} {np.median(measured[name] or [np.nan]):6.2f}")
        ranks = Counter(rank for rank, _ in measured["stragglers"])
        for rank, count in ranks.items():
            delay = np.median([delay for late, delay in measured["stragglers"] if late == rank])
            print(f"  rank {rank} was last in {count} steps, by {delay:.2f} ms")


if __name__ == "__main__":
    main()
