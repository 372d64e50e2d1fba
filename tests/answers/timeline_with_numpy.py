"""Right: a last-in, first-out stack by hand, numpy's arrays, and clusters of sorted ends."""

import argparse
from collections import Counter, defaultdict, namedtuple
from pathlib import Path

import numpy as np

from hvdcourse import record
from hvdcourse.timeline.events import read_events

# What was done for the tensor with this number, from `start` to `end`.
Span = namedtuple("Span", "tensor name start end")


def find_spans(events):
    """Return the spans of a timeline as a list, in any order."""
    spans = []
    depth = defaultdict(list)
    for event in events:
        if event["ph"] not in "BE":
            continue
        moment = event["ts"] * 1e-3
        mine = depth[event["pid"]]
        if event["ph"] == "B":
            mine += [(event["name"], moment)]
        else:
            (name, start), depth[event["pid"]] = mine[-1], mine[:-1]
            spans += [Span(event["pid"], name, start, moment)]
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
    times = np.array([(span.start, span.end) for span in step["NEGOTIATE_ALLREDUCE"]])
    return float(np.diff(times, axis=1).mean())


def fusion_ratio(step):
    """Return how many gradients an allreduce of this step had, as a mean over the allreduces."""
    times = np.array(sorted((span.start, span.end) for span in step["GLOO_ALLREDUCE"]))
    ends = np.maximum.accumulate(times[:, 1])
    return float(len(times) / (1 + np.count_nonzero(times[1:, 0] >= ends[:-1])))


def exposed(step):
    """Return how long the step still communicates when rank 0 has nothing left to compute."""
    (backward,) = step["BACKWARD"]
    return float(
        np.clip(np.array([span.end for span in step["ALLREDUCE"]]) - backward.end, 0, None).max()
    )


def find_straggler(ready):
    """Return the rank that is late in a step, and by how much.

    ``ready`` is {tensor: {rank: when the rank was ready}}. A rank's delay is how much later it was
    ready than the first rank, as a mean over the tensors.
    """
    ranks = sorted(next(iter(ready.values())))
    moments = np.array([[of_rank[rank] for rank in ranks] for of_rank in ready.values()])
    delays = (moments - moments.min(axis=1, keepdims=True)).mean(axis=0)
    return ranks[int(delays.argmax())], float(delays.max())


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
