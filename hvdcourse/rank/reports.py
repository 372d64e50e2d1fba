"""How a script tells what it found: to the reader, to a progress bar, and to a check."""

from typing import Any

import numpy as np

from hvdcourse.rank.place import Place
from hvdcourse.rank.run_folder import RunFolder


def report(name: str, value: Any) -> None:
    """Print ``name: value`` and, in a run under ``hvdcourse``, keep it as this rank's finding.

    Args:
        name: what was found, for example ``"mean"``.
        value: a number, a text, an array or tensor of any shape, or lists and dicts of these.
    """
    with np.printoptions(precision=4, threshold=12, suppress=True):
        shown = value.numpy() if hasattr(value, "numpy") else value
        print(f"{name}: {shown}", flush=True)
    record(name, value)


def record(name: str, value: Any) -> None:
    """Keep a finding, without printing it, as ``report`` does in a run under ``hvdcourse``."""
    folder = RunFolder.of_this_process()
    if folder is not None:
        entry = {"report": name, "value": value}
        folder.append(Place.from_environment().rank, "evidence", entry)


def report_metrics(**metrics: Any) -> None:
    """Hand one row of training metrics to the run's progress bar and history.

    Args:
        metrics: numbers by name. ``epoch`` and ``epochs``, counted from 1, move the bar; a row
            with ``done=True`` closes an epoch and becomes part of the history.
    """
    folder = RunFolder.of_this_process()
    if folder is not None:
        folder.append(Place.from_environment().rank, "metrics", metrics)
