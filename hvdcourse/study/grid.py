"""Grids of runs, conditions x seeds, that can be trusted: ``study(grid, records=…)``."""

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from numbers import Integral
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from hvdcourse.errors import BadInput, checked_limit
from hvdcourse.launch.run import largest_np, run_quickly
from hvdcourse.machine.cores import usable_cores
from hvdcourse.machine.gpus import visible_gpus
from hvdcourse.study.command import short_command_of
from hvdcourse.study.condition import Condition
from hvdcourse.study.records import Records, data_named, key_of, read_records, run_key

WORKER = Path(__file__).with_name("worker.py")
Grid = Mapping[str, Condition]
KeyedRun = tuple[str, dict[str, Any]]


class GridLoader(yaml.SafeLoader):
    """Reads YAML, and refuses a name that stands twice: only the last one would count."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping. Raises YAMLError for a name that stands in it twice."""
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for name in names:
            if names.count(name) > 1 and name != "<<":
                raise yaml.YAMLError(f"{name!r} stands twice{node.start_mark}")
        return super().construct_mapping(node, deep)


# As in YAML 1.2, and not a text for want of a point or a sign.
GridLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def read_grid(path: str | Path) -> tuple[dict[str, Condition], list[int]]:
    """Read a grid from a YAML file; return its conditions by name, and its seeds.

    The file has ``conditions``, with the settings of each by its name, ``seeds``, and any settings
    that all conditions share: see ``hvdcourse.study.condition.Condition``.

    Raises:
        BadInput: no such file, or something in it that is not as it should be.
    """
    try:
        content = yaml.load(Path(path).read_text(), GridLoader)
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"{path} cannot be read as a grid: {reason}") from None
    conditions = content.get("conditions") if isinstance(content, dict) else None
    if not isinstance(conditions, dict) or not conditions:
        raise BadInput(f"{path}: a grid has 'conditions', with the settings of each by its name")
    shared = {name: value for name, value in content.items() if name not in ("conditions", "seeds")}
    seeds = content.get("seeds", [0])
    if not isinstance(seeds, list) or not seeds or not all(type(seed) is int for seed in seeds):
        raise BadInput(f"{path}: 'seeds' must be a list of whole numbers; got {seeds!r}")
    rows = {str(name): row or {} for name, row in conditions.items()}
    for name, row in rows.items():
        if not isinstance(row, dict):
            raise BadInput(f"{path}: condition {name!r} must have settings; got {row!r}")
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
        records: the file to add a JSON line to after each run; see ``hvdcourse.study.records``.
        seeds: one run of each condition for each of these.
        timeout: seconds that all runs of one number of ranks may take together.
        quiet: show no progress.

    Returns:
        The records of this grid and these seeds, old and new.

    Raises:
        BadInput: a condition that cannot be run, or no folder for the records.
        RunFailed: a run failed or took too long; the records of those before it are kept.
    """
    path = Path(records).resolve()
    checked_limit(timeout, "timeout")
    prepare_file(path)
    runs = runs_of(grid, seeds)
    for ranks in sorted({condition.ranks for condition in grid.values()}):
        done = {key_of(record) for record in read_records(path).runs}
        missing = {key: run for key, run in runs if key not in done}
        # Two names for the same settings are one run.
        pending = [run for run in missing.values() if run["settings"]["ranks"] == ranks]
        if pending:
            train_runs(pending, ranks, path, timeout, quiet)
    return chosen_records(read_records(path), runs)


def prepare_file(path: Path) -> None:
    """Make the folder of the records. Raises BadInput where they cannot be kept there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"the records cannot be kept in {path}: {error}") from None
    if path.is_dir():
        raise BadInput(f"the records need a file; {path} is a folder")


def runs_of(grid: Grid, seeds: Iterable[int]) -> list[KeyedRun]:
    """Return all runs of a grid, each with its key: name, settings and seed.

    Raises:
        BadInput: a seed or a data set that does not exist, or a condition that asks too much.
        DataUnavailable: a data set's files cannot be fetched.
    """
    seeds = checked_seeds(seeds)
    looked_at = {}
    for name in {condition.data for condition in grid.values()}:
        data, data_digest = data_named(name)
        looked_at[name] = data_digest, len(data.train_images)
    runs = []
    for name, condition in grid.items():
        data_digest, count = looked_at[condition.data]
        if condition.ranks > largest_np():
            raise BadInput(
                f"condition {name!r}: {condition.ranks} ranks are too many for this machine, "
                f"which holds at most {largest_np()}"
            )
        try:
            condition.images_of(count)
        except BadInput as error:
            raise BadInput(f"condition {name!r}: {error}") from None
        for seed in seeds:
            run = {"condition": name, "seed": seed, "settings": asdict(condition)}
            runs.append((run_key(asdict(condition), seed, data_digest), run))
    return runs


def checked_seeds(seeds: Iterable[int]) -> list[int]:
    """Return the seeds, each once. Raises BadInput where one is no whole number of 0 to 2³²-1."""
    distinct = dict.fromkeys(seeds)
    for seed in distinct:
        if not isinstance(seed, Integral) or isinstance(seed, bool) or not 0 <= seed < 2**32:
            raise BadInput(f"a seed must be a whole number from 0 to 2³²-1; got {seed!r}")
    return [int(seed) for seed in distinct]


def train_runs(
    runs: list[dict[str, Any]], ranks: int, records: Path, timeout: float, quiet: bool
) -> None:
    """Train these runs, all of so many ranks; those of one rank several at a time.

    Each of these has a GPU of its own, or, on a machine without one, a core.
    """
    places = visible_gpus() or usable_cores()
    processes = min(places, len(runs), largest_np()) if ranks == 1 else ranks
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(run) + "\n" for run in runs)
        file.flush()
        if not quiet:
            many = f"{len(runs)} run{'s' * (len(runs) > 1)}"
            print(f"{many} of {ranks} rank{'s' * (ranks > 1)}; one of them alone would be")
            print(f"$ {short_command_of(runs[0], ranks)}", flush=True)
        run_quickly(
            WORKER,
            np=processes,
            timeout=timeout,
            quiet=quiet,
            records=records,
            runs=file.name,
        )


def chosen_records(records: Records, runs: list[KeyedRun]) -> Records:
    """Return the records of these runs, in their order and under their names."""
    by_key = {key_of(record): record for record in records.runs}
    chosen = [
        {**by_key[key], "condition": run["condition"]}
        for key, run in runs if key in by_key
    ]  # fmt: skip
    for line in records.skipped:
        print(f"warning: {line}", file=sys.stderr)
    return Records(chosen, records.skipped)
