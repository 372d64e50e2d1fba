"""Judges numbers that a collective must lead to, and says whose or what they are instead."""

from collections.abc import Mapping

import numpy as np

from hvdcourse.checks.evidence import ObservedRun, demand


def in_short(numbers: np.ndarray) -> str:
    """Return the first few numbers of a list as text."""
    return np.array2string(numbers, precision=3, threshold=4, edgeitems=3, separator=", ")


def close(value: np.ndarray, expected: np.ndarray) -> bool:
    """Whether two arrays have the same shape and are equal to five digits, as in float32."""
    same_shape = value.shape == expected.shape
    return same_shape and np.allclose(value, expected, rtol=1e-5, atol=1e-5, equal_nan=True)


def which(value: np.ndarray, expected: np.ndarray, mistakes: Mapping[str, np.ndarray]) -> str:
    """Say what a value is: the expected one, that of a known mistake, or how far it is away."""
    if close(value, expected):
        return "the right one"
    known = [mistake for mistake, wrong in mistakes.items() if close(value, wrong)]
    if known:
        return known[0]
    if value.shape != expected.shape:
        return f"{len(value)} numbers instead of {len(expected)}"
    if not np.isfinite(value).all():
        return "numbers that are not finite"
    return f"numbers that are off by up to {np.abs(value - expected).max():.3g}"


def took_part(run: ObservedRun, since: str, before: str) -> list[bool]:
    """Return for every rank whether it took part in a collective between two reports.

    A rank that is alone need not.
    """
    return [run.np == 1 or bool(rank.communicated(since, before)[-1]) for rank in run.ranks]


def demand_by_collective(
    expected: str, right: list[bool], collective: list[bool], lines: list[str], alone: bool = False
) -> None:
    """Raise Unmet unless every rank's result is right, and a collective led to it.

    With ``alone``, a rank can also get the right result alone; without it, a right one is proof.
    """
    demand(
        expected,
        [
            is_right and (called or not alone)
            for is_right, called in zip(right, collective, strict=True)
        ],
        [
            line if called else f"{line}; it called no collective"
            for line, called in zip(lines, collective, strict=True)
        ],
    )
