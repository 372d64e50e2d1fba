"""The ways in which ranks start, for tests that hold for all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hvdcourse.launch.result import RunResult
from hvdcourse.launch.run import run, run_quickly


def all_sleep(result: RunResult) -> bool:
    """Whether all ranks stood in the line that sleeps without an end."""
    return all("sleep(600)" in str(rank.position) for rank in result.ranks)


@dataclass(frozen=True)
class Start:
    """One way to start ranks: call it as ``run``.

    ``limit`` is a time limit in seconds by which ranks have begun where nothing else computes.
    """

    name: str
    function: Callable[..., RunResult]
    backend: str
    limit: int

    def until_the_limit(
        self, script: Path, np: int, sleep: Callable[[RunResult], bool] = all_sleep
    ) -> RunResult:
        """Run a script without an end until a time limit by which its ranks have come to sleep."""
        limit = self.limit
        while True:
            result = self(script, np, timeout=limit, must_succeed=False)
            if result.reason != "time limit" or sleep(result):
                return result
            limit *= 2

    def __call__(self, *arguments: Any, **options: Any) -> RunResult:
        return self.function(*arguments, backend=self.backend, **options)


FORKED = Start("forked", run_quickly, "gloo", 3)
QUICK_MPI = Start("quick mpi", run_quickly, "mpi", 4)
GLOO = Start("horovodrun gloo", run, "gloo", 8)
MPI = Start("horovodrun mpi", run, "mpi", 8)


def starts(*chosen: Start) -> pytest.MarkDecorator:
    """Run a test with each of these as ``start``."""
    return pytest.mark.parametrize("start", chosen, ids=lambda start: start.name)


# `horovodrun --mpi` only calls the mpirun that the quick start calls itself.
every_start = starts(FORKED, QUICK_MPI, GLOO)
quick_starts = starts(FORKED, QUICK_MPI)
