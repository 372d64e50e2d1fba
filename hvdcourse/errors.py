"""What was asked for and cannot be done, and the numbers that every room checks alike."""

import re
from typing import Any

_RATE = re.compile(r"(\d{1,4})([kmg])bit")
_BITS = {"k": 10**3, "m": 10**6, "g": 10**9}


class BadInput(ValueError):
    """What was asked for cannot be run; the message names the input and what to do."""

    def _render_traceback_(self) -> list[str]:
        """Let a notebook show the message alone."""
        return [f"{type(self).__name__}: {self}"]


def positive(value: Any, name: str, kind: str = "number") -> float:
    """Return a number above 0, of this kind in words. Raises BadInput where it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise BadInput(f"{name} must be a {kind} above 0; got {value!r}")
    return number


def checked_limit(seconds: Any, name: str) -> float:
    """Return a time limit in seconds. Raises BadInput where it is not a number above 0."""
    return positive(seconds, name, "number of seconds")


def bits_per_second(bandwidth: str) -> int:
    """Return the bits per second of a rate as ``tc`` reads it, such as 100mbit.

    Raises:
        BadInput: it is no such rate, or below 1mbit.
    """
    match = _RATE.fullmatch(bandwidth)
    bits = int(match[1]) * _BITS[match[2]] if match else 0
    if bits < _BITS["m"]:
        raise BadInput(
            f"bandwidth must be a rate from 1mbit up, such as 100mbit or 1gbit; got {bandwidth!r}"
        )
    return bits


def whole_number(value: Any, name: str, most: int) -> int:
    """Return a whole number from 1 to ``most``. Raises BadInput where it is none."""
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if not 1 <= number <= most:
        raise BadInput(f"{name} must be a whole number from 1 to {most}; got {value!r}")
    return number
