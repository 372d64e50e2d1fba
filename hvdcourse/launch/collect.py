"""Puts together what came of a run, from its supervisor's events and the ranks' own records."""

import math
import re
import shlex
from collections.abc import Iterator

from hvdcourse.launch.job import Event, Job, OutputLine, ProcessEnd, RunEnd
from hvdcourse.launch.result import RankResult, RunResult
from hvdcourse.launch.stacks import position_from_stack_file, position_from_traceback
from hvdcourse.rank.run_folder import RunFolder

_KILLED_UNDER_MPIRUN = re.compile(
    r"process rank (\d+) with PID \d+ on node .* exited on signal (\d+)"
)
_ENDED_UNDER_HOROVODRUN = re.compile(r"Process name: (\d+)\nExit code: (-?\d+)")


def collect_result(job: Job, events: list[Event], folder: RunFolder) -> RunResult:
    """Put together what the supervisor said and what the ranks left in their folder."""
    last = events[-1]
    assert isinstance(last, RunEnd)
    ranks = [collect_rank(rank, job, folder) for rank in range(job.np)]
    launcher_output = []
    for event in events:
        if isinstance(event, ProcessEnd) and event.rank is not None and not event.by_supervisor:
            ended = ranks[event.rank]
            ended.status, ended.ended_at = event.status, min(ended.ended_at, event.time)
        elif isinstance(event, OutputLine) and event.rank is None:
            launcher_output.append(event.text)
        elif isinstance(event, OutputLine) and event.rank is not None:
            rank = ranks[event.rank]
            (rank.output if event.stream == "stdout" else rank.errors).append(event.text)
    if last.reason == "failed":
        for number, status in ends_told_by_launcher("\n".join(launcher_output)):
            if ranks[number].status is None:
                ranks[number].status = status
    return RunResult(
        command=shlex.join(job.command),
        np=job.np,
        reason=last.reason,
        timeout=job.timeout,
        stood_still=last.stood_still,
        ranks=ranks,
        launcher_output=launcher_output,
        launcher_log=last.log,
    )


def ends_told_by_launcher(text: str) -> Iterator[tuple[int, int]]:
    """Yield rank and exit status, negative for a signal, of the ranks whose end it names."""
    for rank, number in _KILLED_UNDER_MPIRUN.findall(text):
        yield int(rank), -int(number)
    for rank, status in _ENDED_UNDER_HOROVODRUN.findall(text):
        # A shell stands between: it tells a signal as 128 and its number.
        yield int(rank), int(status) if int(status) < 128 else 128 - int(status)


def collect_rank(number: int, job: Job, folder: RunFolder) -> RankResult:
    """Read what one rank left in the run's folder."""
    ended = folder.read_state(number, "ended") or {}
    rank = RankResult(
        rank=number,
        status=ended.get("status"),
        error=ended.get("error"),
        ended_at=ended.get("time", math.inf),
        evidence=folder.read_lines(number, "evidence"),
        metrics=folder.read_lines(number, "metrics"),
    )
    if rank.error and rank.is_consequence:
        rank.position = position_from_traceback(rank.error["traceback"], job.script)
    elif not ended:
        rank.position = position_from_stack_file(folder.stack_file(number), job.script)
    return rank
