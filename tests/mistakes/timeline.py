"""Mistakes in ``timeline.py``."""

from mistakes.round import Round, mistake, together

SPAN = 'spans.append(Span(event["pid"], begin["name"], start, end))'
TIMES = 'start, end = begin["ts"] / 1000, event["ts"] / 1000'
STACK = 'opened[event["pid"]].pop()'
NEGOTIATION = 'return np.mean([span.end - span.start for span in step["NEGOTIATE_ALLREDUCE"]])'
FUSION = "return len(sends) / allreduces"
EXPOSED = 'return max(0.0, end - step["BACKWARD"][0].end)'
LAST = 'end = max(span.end for span in step["ALLREDUCE"])'
LATEST = "rank = max(means, key=means.get)"
DELAY = "delays[rank].append(moment - min(of_rank.values()))"
MEANS = "means = {rank: np.mean(values) for rank, values in delays.items()}"


def events_and_straggler(first, last) -> Round:
    """Return mistakes of step 1 and 5: without the spans, the steps between cannot be right."""
    return together(first, last, spoiled=(2, 3, 4))


ROUNDS = (
    together(
        mistake(
            2,
            "20 gradients, as in the recorded timelines",
            (NEGOTIATION, NEGOTIATION.replace("np.mean", "sum") + " / 20"),
            said=" ms; it should be ",
        ),
        mistake(
            3,
            "20 gradients, as in the recorded timelines",
            (FUSION, "return 20 / allreduces"),
            said="; it should be ",
        ),
        mistake(
            4,
            "below 0 where all is hidden",
            (EXPOSED, 'return end - step["BACKWARD"][0].end'),
            said=" ms; it should be 0.00",
        ),
    ),
    together(
        mistake(
            2,
            "the sum",
            (NEGOTIATION, NEGOTIATION.replace("np.mean", "sum")),
            said="that is the sum over the gradients",
        ),
        mistake(
            3, "a count", (FUSION, "return allreduces"), said="that is the number of allreduces"
        ),
        mistake(
            4,
            "from the start of the backward pass",
            (EXPOSED, 'return end - step["BACKWARD"][0].start'),
            said="that is counted from the start of the backward pass",
        ),
    ),
    together(
        mistake(
            2,
            "the longest",
            (NEGOTIATION, NEGOTIATION.replace("np.mean", "max")),
            said="that is the longest negotiation",
        ),
        mistake(
            3,
            "upside down",
            (FUSION, "return allreduces / len(sends)"),
            said="that is the inverse of the ratio",
        ),
        mistake(
            4,
            "from the start of the step",
            (EXPOSED, 'return end - step["FORWARD"][0].start'),
            said="that is counted from the start of the forward pass",
        ),
    ),
    together(
        mistake(
            2,
            "seconds",
            (NEGOTIATION, NEGOTIATION + " / 1000"),
            said="that is in seconds",
        ),
        mistake(
            3,
            "all in one",
            (FUSION, "return len(sends)"),
            said="that is the number of gradients",
        ),
        mistake(
            4,
            "from the first allreduce",
            (EXPOSED, 'return end - min(span.start for span in step["GLOO_ALLREDUCE"])'),
            said="that is counted from the first allreduce",
        ),
    ),
    together(
        mistake(
            2,
            "the sending",
            (NEGOTIATION, NEGOTIATION.replace("NEGOTIATE", "GLOO")),
            said="that is the sending",
        ),
        mistake(
            3,
            "whole numbers",
            (FUSION, "return len(sends) // allreduces"),
            said=".00; it should be ",
        ),
        mistake(
            4, "the first to end", (LAST, LAST.replace("max", "min")), said=" ms; it should be "
        ),
    ),
    together(
        mistake(
            2,
            "from the first to the last",
            (
                NEGOTIATION,
                'spans = step["NEGOTIATE_ALLREDUCE"]\n'
                "    return max(span.end for span in spans) - min(span.start for span in spans)",
            ),
            said=" ms; it should be ",
        ),
        mistake(
            3,
            "starts that are equal to the microsecond",
            (FUSION, "return len(sends) / len({send.start for send in sends})"),
            said="; it should be ",
        ),
        mistake(
            4,
            "the mean end",
            (LAST, LAST.replace("max(", "np.mean([").replace('"ALLREDUCE"])', '"ALLREDUCE"]])')),
            said=" ms; it should be ",
        ),
    ),
    events_and_straggler(
        mistake(
            1,
            "one stack for all tensors",
            ('opened[event["pid"]].append', 'opened["all"].append'),
            (STACK, 'opened["all"].pop()'),
            (SPAN, SPAN.replace('event["pid"]', 'begin["pid"]')),
            said="ms; in the file it is of tensor",
        ),
        mistake(5, "the first", (LATEST, LATEST.replace("max", "min")), said="you name rank"),
    ),
    events_and_straggler(
        mistake(
            1, "microseconds", (TIMES, TIMES.replace(" / 1000", "")), said="your span ALLREDUCE of"
        ),
        mistake(5, "the largest", (MEANS, MEANS.replace("np.mean", "max")), said=" ms, not by "),
    ),
    events_and_straggler(
        mistake(1, "a queue", (STACK, STACK.replace("()", "(0)")), said="your span ALLREDUCE of"),
        mistake(5, "the sum", (MEANS, MEANS.replace("np.mean", "sum")), said=" ms, not by "),
    ),
    events_and_straggler(
        mistake(
            1,
            "end and start exchanged",
            (SPAN, SPAN.replace("start, end", "end, start")),
            said="your span ALLREDUCE of",
        ),
        mistake(
            5,
            "later than rank 0",
            (DELAY, "delays[rank].append(moment - of_rank[0])"),
            said=" ms, not by ",
        ),
    ),
    events_and_straggler(
        mistake(
            1,
            "durations",
            (SPAN, SPAN.replace("start, end", "start, end - start")),
            said="your span ALLREDUCE of",
        ),
        mistake(
            5,
            "seconds",
            ("return rank, means[rank]", "return rank, means[rank] / 1000"),
            said=" ms, not by ",
        ),
    ),
)
