"""What ``hvdcourse study`` does: it runs a grid, and shows the table of what is recorded."""

import sys
from pathlib import Path

from hvdcourse.errors import checked_limit
from hvdcourse.launch.result import RunFailed
from hvdcourse.study.grid import Grid, read_grid, runs_of, study
from hvdcourse.study.records import key_of, read_records
from hvdcourse.study.tables import summary, to_text

INTERRUPTED = 130


def run_study(grid_file: Path, records: Path, timeout: str) -> int:
    """Run the grid of a YAML file, print what is recorded, and return the exit status.

    That is 0, the status of the run that failed, or 130 where it was interrupted.

    Raises:
        BadInput: the grid, the limit or the file of records is not as it should be.
    """
    seconds = checked_limit(timeout, "timeout")
    grid, seeds = read_grid(grid_file)
    try:
        recorded = study(grid, records=records, seeds=seeds, timeout=seconds)
    except RunFailed as failed:
        print(f"\nerror: {failed}\n{state_of(grid, seeds, records)}", file=sys.stderr)
        return failed.result.exit_status
    except KeyboardInterrupt:
        print(f"\ninterrupted: {state_of(grid, seeds, records)}", file=sys.stderr)
        return INTERRUPTED
    print(to_text(summary(recorded)))
    return 0


def state_of(grid: Grid, seeds: list[int], records: Path) -> str:
    """Return in words how many runs are recorded."""
    runs = runs_of(grid, seeds)
    done = {key_of(record) for record in read_records(records).runs}
    return (
        f"{sum(key in done for key, _ in runs)} of {len(runs)} runs are recorded in {records}; "
        "the same command goes on with the rest."
    )
