"""Tables of a study, made from its records and from nothing else."""

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from hvdcourse.errors import BadInput
from hvdcourse.study.records import Records, key_of

Record = Mapping[str, Any]
VALUES = ("test_accuracy", "accuracy")
COLUMNS = (
    *("ranks", "global_batch_size", "steps", "seeds", "averaged", "diverged"),
    *(f"{name}_{kind}" for name in VALUES for kind in ("mean", "std")),
)


def summary(runs: Records | Iterable[Record]) -> pd.DataFrame:
    """Return a table with one row for each condition, in the order of their first appearance.

    Its index is the condition. Its columns:

    - ``ranks``, ``global_batch_size`` (images) and ``steps`` of a run, the mean where runs differ;
    - ``seeds``: how many runs there are, each with a seed of its own;
    - ``averaged``: how many of them the averages are over: those that did not diverge;
    - ``diverged``: how many of them ended with a loss that is not finite;
    - for ``test_accuracy`` and ``accuracy`` after the last epoch ``…_mean`` and ``…_std``, the
      sample standard deviation over the seeds (with n-1), which is nan for one seed.

    Args:
        runs: records, as ``study`` and ``read_records`` return them. A run that appears twice
            counts once.

    Raises:
        BadInput: the runs of a condition differ in their settings or their data, so that their
            mean would be one of different things.
    """
    by_condition: dict[str, dict[str, Record]] = {}
    for run in runs.runs if isinstance(runs, Records) else runs:
        by_condition.setdefault(run["condition"], {}).setdefault(key_of(run), run)
    rows = [row_of(name, list(group.values())) for name, group in by_condition.items()]
    return pd.DataFrame(rows, index=pd.Index(by_condition, name="condition"), columns=COLUMNS)


def row_of(condition: str, runs: list[Record]) -> dict[str, Any]:
    """Return one condition's row. Raises BadInput where its runs are not of the same settings."""
    first = runs[0]
    for run in runs:
        if key_of({**run, "seed": 0}) != key_of({**first, "seed": 0}):
            raise BadInput(
                f"the records of {condition!r} differ in {', '.join(differences(first, run))}: "
                "they are runs of different conditions"
            )
    last_epochs = [run["epochs"][-1] for run in runs if not diverged(run)]
    averaged = pd.DataFrame(last_epochs, columns=VALUES, dtype=float)
    steps = sum(run["steps"] for run in runs) / len(runs)
    row = {
        "ranks": first["ranks"],
        "global_batch_size": first["global_batch_size"],
        "steps": int(steps) if steps == int(steps) else steps,
        "seeds": len(runs),
        "averaged": len(averaged),
        "diverged": len(runs) - len(averaged),
    }
    for name in VALUES:
        row[f"{name}_mean"], row[f"{name}_std"] = averaged[name].mean(), averaged[name].std()
    return row


def at_training_loss(runs: Iterable[Record], levels: Iterable[float]) -> pd.DataFrame:
    """Return the test accuracies at equal training loss: a row for each level and condition.

    Each run counts with the first epoch that ended at no more than the level. A record has the mean
    of the loss over each epoch, and it falls within one; so the mean over the *next* epoch stands
    for the loss at the end of this one. ``seeds`` says how many runs came so far, and the other
    columns are their test accuracy and their steps.
    """
    rows = []
    for level in levels:
        reached: dict[str, list[Record]] = {}
        for run in runs:
            first = reached.setdefault(run["condition"], [])
            low = (
                row
                for row, following in itertools.pairwise(run["epochs"])
                if following["loss"] is not None and following["loss"] <= level
            )
            first.extend(itertools.islice(low, 1))
        for name, epochs in reached.items():
            first = pd.DataFrame(epochs, columns=["test_accuracy", "step"], dtype=float)
            mean, std = first["test_accuracy"].mean(), first["test_accuracy"].std()
            rows.append((level, name, len(epochs), mean, std, first["step"].mean()))
    columns = ["training loss", "condition", "seeds", "test accuracy", "std", "steps"]
    table = pd.DataFrame(rows, columns=columns).set_index(["training loss", "condition"])
    return table.round({"test accuracy": 3, "std": 3, "steps": 0})


def diverged(run: Record) -> bool:
    """Whether the run ended with a training or a test loss that is not finite."""
    losses = (run["epochs"][-1].get(name) for name in ("loss", "test_loss"))
    return any(loss is None or not math.isfinite(loss) for loss in losses)


def differences(first: Record, second: Record) -> list[str]:
    """Return the settings in which two records differ, with both values; at least one text."""
    names = dict.fromkeys([*first["settings"], *second["settings"]])
    pairs = {name: (first["settings"].get(name), second["settings"].get(name)) for name in names}
    texts = [f"{name} ({a} and {b})" for name, (a, b) in pairs.items() if a != b]
    return texts or ["their data"]


def to_text(frame: pd.DataFrame) -> str:
    """Return the table as a terminal shows it: numbers of four digits, – where there is none."""
    return frame.reset_index().to_string(index=False, float_format="{:.4g}".format, na_rep="–")
