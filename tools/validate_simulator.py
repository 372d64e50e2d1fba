"""Compares the simulator with real Horovod over Gloo, on hosts of this machine. Needs root.

    sudo .venv/bin/python tools/validate_simulator.py measure 2 1gbit raw.jsonl   # and so on
    .venv/bin/python tools/validate_simulator.py predict raw.jsonl RECORD

``measure`` makes so many hosts with one rank each and links of this rate, and appends what it
measured. ``predict`` fits a link and Horovod's constant to some sizes at one rate, predicts
everything else, writes the record that lesson 5 shows, and prints it as a table.
"""

import json
import os
import platform
import statistics
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from hvdcourse.cluster import cluster
from hvdcourse.errors import bits_per_second, whole_number
from hvdcourse.simulate.algorithms import fit_link, ring
from hvdcourse.simulate.links import Link, flat
from hvdcourse.simulate.step import Horovod, Layer, simulate

WORKER = str(Path(__file__).with_name("validation_worker.py"))
KIB, MIB = 2**10, 2**20
SIZES = [KIB, 32 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB]
REPEATS = 15
SECONDS = 160.0
# What the model may know. The longest and the shortest, most hosts and other rates are predicted.
FITTED_RATE, FITTED_RANKS, FITTED_SIZES = "1gbit", [2, 4], [MIB, 16 * MIB]


def measure(hosts, rate, output):
    """Append the measurements of a cluster: with fusion all of them, without it only the steps.

    Many hosts start slowly on few cores, so that they have no time for steps without fusion.
    """
    slow = bits_per_second(rate) < 500e6
    sizes = SIZES[:-1] if slow and hosts > 2 else SIZES
    with cluster.hosts(hosts, 1, rate) as made, TemporaryDirectory() as folder:
        launches = (("", sizes), ("0", [])) if hosts < 8 else (("", sizes),)
        for threshold, chosen in launches:
            rows = Path(folder) / f"rows{threshold}.jsonl"
            arguments = [WORKER, json.dumps(chosen), str(5 if slow else REPEATS), str(rows)]
            environment = {"TF_CPP_MIN_LOG_LEVEL": "3"}
            if threshold:
                environment["HOROVOD_FUSION_THRESHOLD"] = threshold
            line = cluster.horovodrun_command(made, script=arguments)
            cluster.execute(made[0], line, SECONDS, environment, quiet=True)
            with output.open("a") as file:
                for text in rows.read_text().splitlines():
                    file.write(json.dumps({"rate": rate, **json.loads(text)}) + "\n")


def read_rows(path):
    """Return the rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def is_fitted(row):
    """Tell whether the link is fitted to this row; all others are predicted."""
    setting = row["rate"] == FITTED_RATE and row["ranks"] in FITTED_RANKS
    return row["kind"] == "allreduce" and setting and row["bytes"] in FITTED_SIZES


def fit_rows(rows):
    """Return the link and the constant that explain the rows to which they are fitted."""
    fitted = [row for row in rows if is_fitted(row)]
    return fit_link(*([row[name] for row in fitted] for name in ("bytes", "median", "ranks")))


def predict(row, fit):
    """Return the seconds of a row, on a link of another rate with the same share of use."""
    usable = fit.link.bandwidth / bits_per_second(FITTED_RATE)
    cluster = flat(row["ranks"], Link(fit.link.latency, usable * bits_per_second(row["rate"])))
    if row["kind"] == "allreduce":
        return fit.constant + ring(row["bytes"], cluster)
    count = row["layers"]
    layers = [Layer(str(each), row["bytes"], row["compute"] / count) for each in range(count)]
    # The constant is the wait for the next wake-up, half a cycle on average, and the negotiation.
    negotiation = max(0.0, fit.constant - Horovod.cycle / 2)
    fusion = Horovod.fusion_bytes if row["fused"] else 0
    return simulate(layers, 0.0, cluster, Horovod(fusion, negotiation=negotiation)).seconds


def measured(row):
    """Return a row with the spread of its seconds in their place."""
    seconds = row.pop("seconds")
    spread = {"median": statistics.median(seconds), "min": min(seconds), "max": max(seconds)}
    return {**row, **spread, "repeats": len(seconds)}


def head(fit, raw):
    """Return the first line of the record: what was measured, where and with which command."""
    return {
        "format": "hvdcourse simulator validation 1",
        "command": "tools/validate_simulator.py measure HOSTS RATE raw.jsonl",
        "date": date.fromtimestamp(raw.stat().st_mtime).isoformat(),
        "machine": f"{os.cpu_count()} cores for all hosts together, {platform.machine()}",
        "versions": {name: version(name) for name in ("horovod", "tensorflow-cpu")},
        "fitted": {"rate": FITTED_RATE, "ranks": FITTED_RANKS, "bytes": FITTED_SIZES},
        "latency": fit.link.latency,
        "bandwidth": fit.link.bandwidth,
        "constant": fit.constant,
    }


def write_record(raw, record):
    """Predict each row, write the record, and print it."""
    rows = [measured(row) for row in read_rows(raw)]
    fit = fit_rows(rows)
    rows = [{**row, "fitted": is_fitted(row), "predicted": predict(row, fit)} for row in rows]
    lines = [json.dumps(line) for line in (head(fit, raw), *rows)]
    record.write_text("".join(line + "\n" for line in lines))
    columns = ("rate", "hosts", "what", "measured, ms", "min to max", "predicted", "error")
    table = Table(*columns, title=str(fit))
    for row in rows:
        what = f"{row['bytes'] / KIB:,.0f} KiB" + (" (fitted)" if row["fitted"] else "")
        if row["kind"] == "step":
            what = f"{row['layers']} x {what}, {'fused' if row['fused'] else 'unfused'}"
        middle, least, most, ours = (
            1000 * row[name] for name in ("median", "min", "max", "predicted")
        )
        spread, error = f"{least:,.1f} to {most:,.1f}", f"{ours / middle - 1:+.0%}"
        cells = (what, f"{middle:,.1f}", spread, f"{ours:,.1f}", error)
        table.add_row(row["rate"], str(row["ranks"]), *cells)
    Console(width=110).print(table)


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "measure":
        measure(whole_number(sys.argv[2], "hosts", 16), sys.argv[3], Path(sys.argv[4]))
    elif len(sys.argv) == 4 and sys.argv[1] == "predict":
        write_record(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
