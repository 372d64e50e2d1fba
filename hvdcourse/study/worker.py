"""What the ranks of a study run: it trains run after run, and adds a record after each.

    horovodrun -np 2 --gloo python -m hvdcourse.study.worker --records FILE --run '{"seed": 0, …}'

A run is JSON: its condition's name and settings, and its seed. Runs of several ranks are trained by
all ranks together; runs of one rank are dealt out, and the ranks do not talk to each other.
"""

import argparse
import itertools
import json
import os
import platform
import time
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import horovod
import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow import allgather_object

from hvdcourse.errors import BadInput
from hvdcourse.rank.place import Place
from hvdcourse.rank.reports import report_metrics
from hvdcourse.study.command import command_of
from hvdcourse.study.condition import Condition
from hvdcourse.study.records import append_record, data_named
from hvdcourse.study.train import train


class StudyFailed(RuntimeError):
    """A run raised an error; the message names its condition and its seed."""


data_kept = cache(data_named)


def cores_of_run(ranks: int) -> int:
    """Return how many cores the run's ranks may use together; all of its ranks call this."""
    cores = {(platform.node(), core) for core in os.sched_getaffinity(0)}
    return len(set.union(*allgather_object(cores)) if ranks > 1 else cores)


def runs_asked_for(arguments: argparse.Namespace, size: int) -> list[dict[str, Any]]:
    """Return the runs of the command line.

    Raises:
        BadInput: a run that is not as it should be, or needs another number of ranks.
    """
    lines = arguments.run + (arguments.runs.read_text().splitlines() if arguments.runs else [])
    runs = []
    for line in lines:
        try:
            run = json.loads(line)
            runs.append({name: run[name] for name in ("condition", "seed", "settings")})
        except (ValueError, KeyError, TypeError):
            raise BadInput(f"a run is JSON with condition, seed and settings; got {line}") from None
    ranks = {Condition.from_mapping(run["condition"], run["settings"]).ranks for run in runs}
    if len(ranks) > 1 or not ranks <= {1, size}:
        raise BadInput(
            f"all runs must be of 1 rank, or all of the {size} that were started; got runs of "
            f"{', '.join(map(str, sorted(ranks)))}"
        )
    return runs


def train_and_record(
    run: dict[str, Any], records: Path, place: Place, epochs_before: int, of: int
) -> None:
    """Train once, and add the record of it."""
    condition = Condition.from_mapping(run["condition"], run["settings"])
    data, data_digest = data_kept(condition.data)

    def show(row: dict[str, Any]) -> None:
        numbers = {name: row[name] for name in ("loss", "test_accuracy") if row[name] is not None}
        report_metrics(epoch=epochs_before + row["epoch"], epochs=of, done=True, **numbers)

    began = time.time()
    measured, model = train(condition, run["seed"], data, show)
    seconds, cores = round(time.time() - began, 1), cores_of_run(condition.ranks)
    if condition.ranks > 1 and place.rank != 0:
        return
    record = {
        **about_run(run, condition),
        "data": {
            "name": Path(condition.data).name,
            "fingerprint": data_digest,
            "source": data.source,
            "train_images": condition.images_of(len(data.train_images)),
            "tested_on": "held-out training images" if condition.hold_out else "test images",
        },
        "cores": cores,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": seconds,
        "settings": asdict(condition),
        **measured,
    }
    if condition.keep_weights:
        file = weights_file(records, run["condition"], run["seed"])
        np.savez(file, **{f"w{n:03d}": value for n, value in enumerate(model.get_weights())})
        record["weights"] = file.name
    append_record(records, record)


def about_run(run: dict[str, Any], condition: Condition) -> dict[str, Any]:
    """Return what a record says of a run before it has trained."""
    return {
        "condition": run["condition"],
        "seed": run["seed"],
        "ranks": condition.ranks,
        "batch_size": condition.batch_size,
        "global_batch_size": condition.global_batch_size,
        "command": command_of(run, condition.ranks),
        "machine": platform.machine(),
        "gpus": len(tf.config.list_physical_devices("GPU")),
        "versions": {
            "python": platform.python_version(), "tensorflow": tf.__version__,
            "horovod": horovod.__version__, "numpy": np.__version__,
        },
    }  # fmt: skip


def weights_file(records: Path, condition: str, seed: int) -> Path:
    """Return where a run's weights are kept: a file that no other record names."""
    name = "".join(letter if letter.isalnum() else "_" for letter in condition)
    endings = itertools.chain([""], (f".{number}" for number in itertools.count(2)))
    files = (records.with_name(f"{records.stem}.{name}.{seed}{ending}.npz") for ending in endings)
    return next(file for file in files if not file.exists())


def main() -> None:
    """Train the runs that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=Path, required=True, help="the file to add to")
    parser.add_argument("--run", action="append", default=[], help="one run, as JSON")
    parser.add_argument("--runs", type=Path, help="a file with one run a line")
    arguments = parser.parse_args()
    # Keras warns where a look at the target takes longer than a training step.
    tf.get_logger().setLevel("ERROR")
    hvd.init()
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    place = Place(hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size())
    arguments.records.parent.mkdir(parents=True, exist_ok=True)
    runs = runs_asked_for(arguments, place.size)
    if all(run["settings"].get("ranks", 1) == 1 for run in runs):
        runs = runs[place.rank :: place.size]
    lengths = [run["settings"].get("epochs", Condition().epochs) for run in runs]
    for number, run in enumerate(runs):
        try:
            train_and_record(run, arguments.records, place, sum(lengths[:number]), sum(lengths))
        except Exception as error:
            what = f"condition {run['condition']!r}, seed {run['seed']}"
            raise StudyFailed(f"{what}: {type(error).__name__}: {error}") from error


if __name__ == "__main__":
    main()
