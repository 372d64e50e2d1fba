"""Grids of runs, conditions x seeds, that can be trusted: ``study(grid, records=…)``."""

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from hvdcourse.condition import Condition
from hvdcourse.data import load
from hvdcourse.launch import BadInput, largest_np, run
from hvdcourse.study_records import Records, fingerprint, key_of, read_records, run_key

WORKER = Path(__file__).with_name("study_worker.py")
Grid = Mapping[str, Condition]


def read_grid(path: str | Path) -> tuple[dict[str, Condition], list[int]]:
    """Read a grid from a YAML file; return its conditions by name, and its seeds.

    The file has ``conditions``, with the settings of each by its name, ``seeds``, and any settings
    that all conditions share: see ``hvdcourse.condition.Condition``.

    Raises:
        BadInput: no such file, or something in it that is not as it should be.
    """
    try:
        content = yaml.safe_load(Path(path).read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInput(f"{path} cannot be read as a grid: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("conditions"), dict):
        raise BadInput(f"{path}: a grid has 'conditions', with the settings of each by its name")
    shared = {name: value for name, value in content.items() if name not in ("conditions", "seeds")}
    seeds = content.get("seeds", [0])
    if not isinstance(seeds, list) or not all(isinstance(seed, int) for seed in seeds):
        raise BadInput(f"{path}: 'seeds' must be a list of whole numbers; got {seeds!r}")
    rows = {str(name): row or {} for name, row in content["conditions"].items()}
    grid = {name: Condition.from_mapping(name, {**shared, **row}) for name, row in rows.items()}
    return grid, seeds


def study(
    grid: Grid,
    *,
    records: str | Path,
    seeds: Iterable[int] = (0, 1, 2),
    timeout: float = 600,
    quiet: bool = False,
) -> Records:
    """Train every condition with every seed, but for the runs that the records already hold.

    It is safe to interrupt: what has finished stays, and the next call goes on with the rest.

    Args:
        grid: the conditions by their name.
        records: the file to add a JSON line to after each run; see ``hvdcourse.study_records``.
        seeds: one run of each condition for each of these.
        timeout: seconds that all runs of one number of ranks may take together.
        quiet: show no progress.

    Returns:
        The records of this grid and these seeds, old and new.

    Raises:
        BadInput: a condition that cannot be run, or no folder for the records.
        RunFailed: a run failed or took too long; the records of those before it are kept.
    """
    path, seeds = Path(records).resolve(), list(seeds)
    path.parent.mkdir(parents=True, exist_ok=True)
    wanted = wanted_runs(grid, seeds)
    for ranks in sorted({condition.ranks for condition in grid.values()}):
        done = {key_of(record) for record in read_records(path).runs}
        pending = {
            key: one for key, one in wanted.items()
            if key not in done and one["settings"]["ranks"] == ranks
        }  # fmt: skip
        if pending:
            start_ranks(list(pending.values()), ranks, path, timeout, quiet)
    return chosen_records(read_records(path), wanted)


def wanted_runs(grid: Grid, seeds: list[int]) -> dict[str, dict[str, Any]]:
    """Return all runs of a grid by their keys: name, settings and seed of each."""
    data = {name: data_fingerprint(name) for name in {one.data for one in grid.values()}}
    runs = {}
    for name, condition in grid.items():
        if condition.data not in ("digits",) and Path(condition.data).is_dir():
            condition = replace(condition, data=str(Path(condition.data).resolve()))
        for seed in seeds:
            key = run_key(asdict(condition), seed, data.get(condition.data) or "")
            runs[key] = {"condition": name, "seed": seed, "settings": asdict(condition)}
    return runs


def data_fingerprint(name: str) -> str:
    """Return the fingerprint of a data set as the worker takes it."""
    data = load(name) if name == "digits" else load(name, dtype="uint8")
    return fingerprint((data.train_images, data.train_labels, data.test_images, data.test_labels))


def start_ranks(
    runs: list[dict[str, Any]], ranks: int, records: Path, timeout: float, quiet: bool
) -> None:
    """Train these runs, all of so many ranks; those of one rank several at a time, one a core."""
    if ranks > largest_np():
        raise BadInput(f"{ranks} ranks are too many for this machine: at most {largest_np()}")
    processes = min(os.cpu_count() or 1, len(runs)) if ranks == 1 else ranks
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as file:
        file.writelines(json.dumps(one) + "\n" for one in runs)
    try:
        if not quiet:
            print(f"{len(runs)} runs of {ranks} rank{'s' * (ranks > 1)}", flush=True)
        run(WORKER, np=processes, timeout=timeout, quiet=quiet, records=records, runs=file.name)
    finally:
        os.unlink(file.name)


def chosen_records(found: Records, wanted: Mapping[str, dict[str, Any]]) -> Records:
    """Return the records of these runs, in their order and under their names."""
    by_key = {key_of(record): record for record in found.runs}
    runs = [
        {**by_key[key], "condition": run["condition"]}
        for key, run in wanted.items() if key in by_key
    ]  # fmt: skip
    for line in found.skipped:
        print(f"warning: {line}", file=sys.stderr)
    return Records(runs, found.skipped)
