"""Runs whose evidence is made up, and what checks say of them."""

from hvdcourse.checks.evidence import ObservedRun, Unmet
from hvdcourse.launch.result import RankResult, RunResult


def observed(*evidence: list[dict], hosts: tuple[int, ...] = (), **arguments) -> ObservedRun:
    """Return a run whose ranks left this evidence."""
    ranks = [RankResult(rank, 0, evidence=entries) for rank, entries in enumerate(evidence)]
    result = RunResult("", len(ranks), "ended", 1, 1, ranks, [])
    return ObservedRun(result, arguments, hosts=hosts)


def told(judge, *runs: ObservedRun, **options) -> str:
    """Return what the check says is not met; "" where all is."""
    try:
        judge(*runs, **options)
    except Unmet as unmet:
        return "\n".join([unmet.expected, *unmet.seen])
    return ""
