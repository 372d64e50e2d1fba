"""Tables of a study, made from its records and from nothing else."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from hvdcourse.errors import BadInput
from hvdcourse.study.records import Records, key_of

Record = Mapping[str, Any]


def summary(
    runs: Records | Iterable[Record],
    value: str = "test_accuracy",
    also: Sequence[str] = ("accuracy",),
) -> pd.DataFrame:
    """Return a table with one row for each condition, in the order of their first appearance.

    Its index is the condition. Its columns:

    - ``ranks``, ``global_batch_size`` (images) and ``steps`` of a run, the mean where runs differ;
    - ``seeds``: how many runs there are, each with a seed of its own;
    - ``diverged``: how many of them ended with a loss that is not finite. No average has them;
    - ``averaged``: how many of them the averages are over: those that neither diverged nor lack
      one of the values, such as ``steps_to_target`` where the target was not reached;
    - for each value ``…_mean`` and ``…_std``, the sample standard deviation over the seeds (with
      n-1), which is nan for one seed.

    Args:
        runs: records, as ``study`` and ``read_records`` return them. A run that appears twice
            counts once.
        value: a measurement of the last epoch, such as ``"test_accuracy"`` or ``"loss"``, or a
            number of the whole run, such as ``"steps_to_target"`` or ``"images_per_second"``.
        also: more of them.

    Raises:
        BadInput: no run has such a value, or the runs of a condition differ in their settings or
            their data, so that their mean would be one of different things.
    """
    values = list(dict.fromkeys([value, *also]))
    runs = each_once(runs.runs if isinstance(runs, Records) else runs)
    for name in values:
        if runs and not any(name in run or name in run["epochs"][-1] for run in runs):
            raise BadInput(f"no record has a {name!r}")
    columns = ["ranks", "global_batch_size", "steps", "seeds", "averaged", "diverged"]
    columns += [f"{name}_{kind}" for name in values for kind in ("mean", "std")]
    names = list(dict.fromkeys(run["condition"] for run in runs))
    rows = [row_of(name, [r for r in runs if r["condition"] == name], values) for name in names]
    index = pd.Index(names, name="condition")
    return pd.DataFrame(rows, index=index, columns=columns)


def each_once(runs: Iterable[Record]) -> list[Record]:
    """Return the runs less those that have the name and the key of an earlier one."""
    once: dict[tuple[str, str], Record] = {}
    for run in runs:
        once.setdefault((run["condition"], key_of(run)), run)
    return list(once.values())


def row_of(condition: str, runs: list[Record], values: list[str]) -> dict[str, Any]:
    """Return one condition's row. Raises BadInput where its runs are not of the same settings."""
    first = runs[0]
    for run in runs:
        if key_of({**run, "seed": 0}) != key_of({**first, "seed": 0}):
            raise BadInput(
                f"the records of {condition!r} differ in {', '.join(differences(first, run))}: "
                "they are runs of different conditions"
            )
    measured = [[value_of(run, name) for name in values] for run in runs if not diverged(run)]
    whole = pd.DataFrame([row for row in measured if None not in row], columns=values, dtype=float)
    steps = sum(run["steps"] for run in runs) / len(runs)
    row = {
        "ranks": first["ranks"],
        "global_batch_size": first["global_batch_size"],
        "steps": int(steps) if steps == int(steps) else steps,
        "seeds": len(runs),
        "averaged": len(whole),
        "diverged": sum(map(diverged, runs)),
    }
    for name in values:
        row[f"{name}_mean"], row[f"{name}_std"] = whole[name].mean(), whole[name].std(ddof=1)
    return row


def value_of(run: Record, name: str) -> float | None:
    """Return a number of the last epoch or of the run; None where it has none, or no finite one."""
    value = run["epochs"][-1].get(name, run.get(name))
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def diverged(run: Record) -> bool:
    """Whether the run ended with a training or a test loss that is not finite."""
    return any(value_of(run, name) is None for name in ("loss", "test_loss"))


def differences(first: Record, second: Record) -> list[str]:
    """Return the settings in which two records differ, with both values; at least one text."""
    names = dict.fromkeys([*first["settings"], *second["settings"]])
    pairs = {name: (first["settings"].get(name), second["settings"].get(name)) for name in names}
    texts = [f"{name} ({a} and {b})" for name, (a, b) in pairs.items() if a != b]
    return texts or ["their data"]


def to_markdown(frame: pd.DataFrame) -> str:
    """Return the table in Markdown: numbers to the right, of four digits, – where there is none."""
    names = [frame.index.name or "", *frame.columns]
    cells = zip(frame.index, frame.values.tolist(), strict=True)
    rows = [names, *([name, *row] for name, row in cells)]
    rows = [[shown(cell).replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    head, *body = [
        "| " + " | ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ) + " |"
        for row in rows
    ]  # fmt: skip
    rule = "|".join("-" * (w + 2) if n == 0 else "-" * (w + 1) + ":" for n, w in enumerate(widths))
    return "\n".join([head, f"|{rule}|", *body])


def shown(value: Any) -> str:
    """Return a cell's text."""
    if not isinstance(value, int | float):
        return str(value)
    if not math.isfinite(value):
        return "–"
    return f"{value:.0f}" if value == int(value) or abs(value) >= 1e4 else f"{value:.4g}"
