"""Measurements that take turns, so that a slow moment of the machine does not hit one alone."""

from collections.abc import Callable, Mapping
from typing import TypeVar

Case = TypeVar("Case")
Measured = TypeVar("Measured")


def in_turns(
    cases: Mapping[Case, Callable[[], Measured]], turns: int = 2
) -> dict[Case, list[Measured]]:
    """Measure every case, then every case again, and so on; return each case's results."""
    results: dict[Case, list[Measured]] = {case: [] for case in cases}
    for _ in range(turns):
        for case, measure in cases.items():
            results[case].append(measure())
    return results
