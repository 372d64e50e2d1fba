"""What ``hvdcourse predict`` does: the table of a training's speed against the number of GPUs."""

import json
from typing import Any

from rich.console import Console
from rich.table import Table

from hvdcourse.simulate.networks import find_network
from hvdcourse.simulate.scaling import what_if

# Title of a column, name in ``what_if``, what its unit takes of it, and how it is written.
COLUMNS = (
    ("GPUs", "gpus", 1, "{:,.0f}"),
    ("step, ms", "seconds", 1000, "{:,.1f}"),
    ("exposed, ms", "exposed", 1000, "{:,.1f}"),
    ("efficiency", "efficiency", 1, "{:.0%}"),
    ("images/s", "images_per_second", 1, "{:,.0f}"),
    ("steps / S_min", "steps", 1, "{:,.2f}"),
    ("time to accuracy", "time", 1, "{:.4f}"),
    ("GPU-hours", "cost", 1, "{:,.2f}"),
)


def show_prediction(
    console: Console, model: str, gpus: str, as_json: bool, settings: dict[str, Any]
) -> None:
    """Print a row for each of 1, 2, 4 … GPUs. Raises BadInput where a setting is wrong."""
    predicted = what_if(model, gpus, **settings)
    if as_json:
        rows = {name: values.tolist() for name, values in predicted.items()}
        print(json.dumps({"model": model, "settings": settings, **rows}, indent=2))
        return
    shown = [column for column in COLUMNS if column[1] in predicted]
    table = Table(title=f"{model}, predicted")
    for title, *_ in shown:
        table.add_column(title, justify="right")
    for row in zip(*(predicted[name] for _, name, _, _ in shown), strict=True):
        cells = zip(shown, row, strict=True)
        table.add_row(*(form.format(scale * value) for (_, _, scale, form), value in cells))
    console.print(table)
    console.print(f"Speed of one GPU: {find_network(model).source}.")
    if "time" in predicted:
        console.print("Time to accuracy and GPU-hours: those of one GPU are 1.")
