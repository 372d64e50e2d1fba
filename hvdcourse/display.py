"""Shows a run while it goes on: the command, each rank's lines, one progress bar."""

import io
import re
import sys
from typing import Any

from IPython import get_ipython
from IPython.display import DisplayHandle
from tqdm import tqdm

_BAR_FORMAT = "{desc} |{bar:24}| {n:.1f} of {total_fmt} epochs, {elapsed}<{remaining}{postfix}"
_SHOWN_METRICS = ("loss", "val_accuracy", "test_accuracy", "images_per_second")
# Horovod's elastic launcher puts this before the lines of its workers.
_OF_WORKER = re.compile(r"\[(\d+)\]<std(?:out|err)>:(.*)")


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    return type(get_ipython()).__name__ == "ZMQInteractiveShell"


class RunDisplay:
    """Prints a run's events; use it as a context manager."""

    def __init__(self, command: str | None, quiet: bool):
        self.command, self.quiet = command, quiet
        self.bar: tqdm | None = None
        # In a notebook the bar has a place of its own, which is overwritten, and kept once.
        self.place = DisplayHandle() if in_notebook() else None

    def __enter__(self) -> "RunDisplay":
        if self.command is not None and not self.quiet:
            print(f"$ {self.command}", flush=True)
        return self

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def show(self, event: dict[str, Any]) -> None:
        """Show one event of the supervisor's."""
        if self.quiet:
            return
        if event["event"] == "output":
            self.show_line(event)
        elif event["event"] == "metrics" and "epochs" in event:
            self.show_progress(event)

    def show_line(self, event: dict[str, Any]) -> None:
        """Print a rank's line behind the rank's number, to the stream that the rank chose."""
        who = "launcher" if event["rank"] is None else event["rank"]
        file = sys.stderr if event["stream"] == "stderr" else sys.stdout
        line = event["line"]
        if of_worker := _OF_WORKER.fullmatch(line):
            who, line = of_worker.groups()
        tqdm.write(f"[{who}] {line}", file=file)
        file.flush()

    def show_progress(self, event: dict[str, Any]) -> None:
        """Move the bar: by whole epochs, and within one by its steps."""
        first = self.bar is None
        if first:
            file = sys.stderr if self.place is None else io.StringIO()
            self.bar = tqdm(
                total=event["epochs"],
                desc="training",
                bar_format=_BAR_FORMAT,
                file=file,
                ascii=False,
            )
        part = 1.0 if event.get("done") else event.get("step", 0) / max(event.get("steps", 1), 1)
        self.bar.n = event["epoch"] - 1 + part
        shown = {name: f"{event[name]:.4g}" for name in _SHOWN_METRICS if name in event}
        self.bar.set_postfix(shown, refresh=True)
        if self.place is not None:
            draw = self.place.display if first else self.place.update
            draw({"text/plain": str(self.bar)}, raw=True)
