"""Searches for a learning rate: grids whose conditions are named ``NAME, rate RATE``."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hvdcourse.study.condition import Condition

Run = Mapping[str, Any]


def searched(run: Run) -> tuple[str, float]:
    """Return what the run was a try for, and its full learning rate."""
    return run["condition"].rsplit(", rate ", 1)[0], Condition(**run["settings"]).full_rate


def rates_tried(runs: Iterable[Run]) -> dict[str, dict[float, list[float]]]:
    """Return, by name and full rate, the test accuracy after the last epoch, seed by seed."""
    tries: dict[str, dict[float, list[float]]] = {}
    for run in sorted(runs, key=lambda run: run["seed"]):
        name, rate = searched(run)
        accuracies = tries.setdefault(name, {}).setdefault(rate, [])
        accuracies.append(run["epochs"][-1]["test_accuracy"])
    return {name: dict(sorted(by_rate.items())) for name, by_rate in tries.items()}


def best_rates(runs: Iterable[Run]) -> dict[str, float]:
    """Return, by name, the full rate with the highest mean accuracy over its seeds."""
    tries = rates_tried(runs)
    return {
        name: max(by_rate, key=lambda rate: float(np.mean(by_rate[rate])))
        for name, by_rate in tries.items()
    }


def best_runs(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Return the runs with each name's best rate, with ``NAME`` alone as their condition."""
    runs = list(runs)
    best = best_rates(runs)
    named = [(run, *searched(run)) for run in runs]
    return [{**run, "condition": name} for run, name, rate in named if rate == best[name]]
