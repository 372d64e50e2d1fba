"""Shows a run while it goes on: the command, each rank's lines, one progress bar."""

import io
import re
import sys
from typing import Any

from IPython import get_ipython
from IPython.display import DisplayHandle
from tqdm import tqdm

from hvdcourse.launch.job import Event, MetricsRow, OutputLine

_BAR_FORMAT = "{desc} |{bar:16}| {n:.1f} of {total_fmt} epochs, {elapsed}<{remaining}{postfix}"
_SHOWN_METRICS = ("loss", "val_accuracy", "test_accuracy", "images_per_second")
# A line that is wider than the page breaks within a number.
_UNITS = {"images_per_second": "images/s"}
# horovodrun puts this before the lines of its ranks.
_OF_RANK = re.compile(r"\[(\d+)\]<std(?:out|err)>:(.*)")


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    return type(get_ipython()).__name__ == "ZMQInteractiveShell"


class RunDisplay:
    """Prints a run's events; use it as a context manager."""

    def __init__(self, command: str, quiet: bool):
        self.command, self.quiet = command, quiet
        self.bar: tqdm | None = None
        # In a notebook the bar has a place of its own, which is overwritten, and kept once.
        self.place = DisplayHandle() if in_notebook() else None

    def __enter__(self) -> "RunDisplay":
        if self.command and not self.quiet:
            print(f"$ {self.command}", flush=True)
        return self

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def show(self, event: Event) -> None:
        """Show one event of the supervisor's."""
        if self.quiet:
            return
        if isinstance(event, OutputLine):
            self.show_line(event)
        elif isinstance(event, MetricsRow) and "epochs" in event.values:
            self.show_progress(event.values)

    def show_line(self, line: OutputLine) -> None:
        """Print a rank's line behind the rank's number, to the stream that the rank chose."""
        who = "launcher" if line.rank is None else str(line.rank)
        file = sys.stderr if line.stream == "stderr" else sys.stdout
        text = line.text
        if of_rank := _OF_RANK.fullmatch(text):
            who, text = of_rank.groups()
        tqdm.write(f"[{who}] {text}", file=file)
        file.flush()

    def show_progress(self, row: dict[str, Any]) -> None:
        """Move the bar: by whole epochs, and within one by its steps."""
        first = self.bar is None
        if self.bar is None:
            file = sys.stderr if self.place is None else io.StringIO()
            self.bar = tqdm(
                total=row["epochs"],
                desc="training",
                bar_format=_BAR_FORMAT,
                file=file,
                ascii=False,
            )
        part = 1.0 if row.get("done") else row.get("step", 0) / max(row.get("steps", 1), 1)
        self.bar.n = row["epoch"] - 1 + part
        shown = {
            _UNITS.get(name, name): f"{row[name]:.4g}" for name in _SHOWN_METRICS if name in row
        }
        self.bar.set_postfix(shown, refresh=True)
        if self.place is not None:
            draw = self.place.display if first else self.place.update
            draw({"text/plain": str(self.bar)}, raw=True)
