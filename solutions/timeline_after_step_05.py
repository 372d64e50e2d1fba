"""What Horovod's timeline tells: who negotiates, what is fused, what is exposed, and who is late.

Run it:    python timeline.py --folder ../notebooks/recorded
Check it:  hvdcourse check timeline

The folder holds timelines that step_anatomy.py has made. One process reads them, and Horovod is not
needed. All times are in milliseconds.

An event is a dict: "ph" says what it is, "ts" when it was, in microseconds, and "pid" is the number
of the tensor. "B" begins a span with the "name" of what is done, "E" ends the tensor's span that
began last: spans can be nested. "X" in a tensor's negotiation says that the rank in "name"
was ready.
"""

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
    # Step 1: `spans` has a Span for each "B" and the "E" that belongs to it, with its start and its
    # end in milliseconds.
    # A stack for each tensor: the end belongs to what began last.
    opened = defaultdict(list)
    for event in events:
        if event["ph"] == "B":
            opened[event["pid"]].append(event)
        elif event["ph"] == "E":
            begin = opened[event["pid"]].pop()
            start, end = begin["ts"] / 1000, event["ts"] / 1000
            spans.append(Span(event["pid"], begin["name"], start, end))
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
    # Step 2: Return this mean.
    return np.mean([span.end - span.start for span in step["NEGOTIATE_ALLREDUCE"]])


def fusion_ratio(step):
    """Return how many gradients an allreduce of this step had, as a mean over the allreduces."""
    # Step 3: Count the allreduces, and return this mean. The sending of gradients that are fused
    # overlaps in time; without GPUs, Horovod sends one allreduce after the other.
    sends = sorted(step["GLOO_ALLREDUCE"], key=lambda span: span.start)
    allreduces, latest = 0, -np.inf
    for send in sends:
        # Who starts before the others are done travels with them.
        allreduces += send.start >= latest
        latest = max(latest, send.end)
    return len(sends) / allreduces


def exposed(step):
    """Return how long the step still communicates when rank 0 has nothing left to compute."""
    # Step 4: Return the time from the end of the backward pass to the end of the last allreduce, or
    # 0 if all of the communication is hidden.
    end = max(span.end for span in step["ALLREDUCE"])
    return max(0.0, end - step["BACKWARD"][0].end)


def find_straggler(ready):
    """Return the rank that is late in a step, and by how much.

    ``ready`` is {tensor: {rank: when the rank was ready}}. A rank's delay is how much later it was
    ready than the rank that was first for that tensor, as a mean over the tensors.
    """
    # Step 5: Return the rank with the largest delay, and this delay.
    delays = defaultdict(list)
    for of_rank in ready.values():
        for rank, moment in of_rank.items():
            delays[rank].append(moment - min(of_rank.values()))
    means = {rank: np.mean(values) for rank, values in delays.items()}
    rank = max(means, key=means.get)
    return rank, means[rank]


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
        if not measured["spans"]:
            print(f"{path.stem}: no spans were found")
            continue
        print(f"{path.stem}, medians over {len(measured['exposed'])} steps:")
        for name in ("negotiation", "fusion_ratio", "exposed"):
            print(f"  {name:13} {np.median(measured[name]):6.2f}")
        ranks = Counter(rank for rank, _ in measured["stragglers"])
        for rank, count in ranks.items():
            delay = np.median([delay for late, delay in measured["stragglers"] if late == rank])
            print(f"  rank {rank} was last in {count} steps, by {delay:.2f} ms")


if __name__ == "__main__":
    main()
