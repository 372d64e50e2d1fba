"""What was asked for and cannot be done, and the numbers that every room checks alike."""

from typing import Any


class BadInput(ValueError):
    """What was asked for cannot be run; the message names the input and what to do."""

    def _render_traceback_(self) -> list[str]:
        """Let a notebook show the message alone."""
        return [f"BadInput: {self}"]


def checked_limit(seconds: Any, name: str) -> float:
    """Return a time limit in seconds. Raises BadInput where it is not a number above 0."""
    try:
        number = float(seconds)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise BadInput(f"{name} must be a number of seconds above 0; got {seconds!r}")
    return number
