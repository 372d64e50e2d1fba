"""Run a script on N ranks: ``run("fashion_mnist.py", np=2, epochs=3)``."""

import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hvdcourse.command_line import arguments_from, equivalent_command
from hvdcourse.display import RunDisplay
from hvdcourse.fork_client import ForkedProcess, prepare, start_supervisor
from hvdcourse.result import RunFailed, RunResult, collect_result
from hvdcourse.run_folder import RunFolder

BACKENDS = ("gloo", "mpi")
SCRIPT_FOLDERS = (".", "source_code", "../source_code")
STANDSTILL_SECONDS = 60.0
# How long the supervisor has to clean up after it was told to stop.
STOP_SECONDS = 8.0
# A supervisor that is so late after the time limit is stuck itself.
LATE_SECONDS = 30.0


class BadInput(ValueError):
    """What was asked for cannot be run; the message names the input and what to do."""

    def _render_traceback_(self) -> list[str]:
        """Let a notebook show the message alone."""
        return [f"BadInput: {self}"]


def largest_np() -> int:
    """Return the largest number of ranks that this machine is asked to hold."""
    return max(16, 4 * (os.cpu_count() or 1))


def checked_np(np: Any) -> int:
    """Return ``np`` as a number of ranks.

    Raises:
        BadInput: not a whole number, below 1, or more than this machine can hold.
    """
    try:
        number = int(str(np))
    except ValueError:
        raise BadInput(f"np must be a whole number of ranks, such as 2; got {np!r}") from None
    if number < 1:
        raise BadInput(f"np must be at least 1; got {number}")
    if number > largest_np():
        raise BadInput(
            f"np={number} is too many for this machine: {os.cpu_count()} cores hold at most "
            f"{largest_np()} ranks; choose a smaller np, or use a cluster"
        )
    return number


def find_script(script: str | Path, folder: str | Path | None = None) -> Path:
    """Return the absolute path of a script, after a look at whether it is valid Python.

    A bare name is looked for in ``folder``, or else in the current folder and ``source_code/``.

    Raises:
        BadInput: no such file, or a syntax error, with its line.
    """
    folders = [Path(folder)] if folder is not None else [Path(name) for name in SCRIPT_FOLDERS]
    candidates = [(place / script).resolve() for place in folders]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        looked = ", ".join(str(candidate) for candidate in candidates)
        raise BadInput(f"no script {str(script)!r}: looked for {looked}")
    try:
        compile(path.read_bytes(), str(path), "exec")
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, SyntaxError) and error.lineno:
            text = (error.text or "").strip()
            raise BadInput(f"{path}, line {error.lineno}: {error.msg}: {text}") from None
        raise BadInput(f"{path} cannot be read as a Python script: {error}") from None
    return path


def checked_limit(seconds: Any, name: str) -> float:
    """Return a time limit in seconds. Raises BadInput where it is not a number above 0."""
    try:
        number = float(seconds)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise BadInput(f"{name} must be a number of seconds above 0; got {seconds!r}")
    return number


@contextmanager
def supervised(job: dict[str, Any]) -> Iterator[subprocess.Popen | ForkedProcess]:
    """Start a supervisor for the job, and leave nothing of it behind however the block ends."""
    log = (Path(job["folder"]) / "supervisor.log").open("wb")
    process = start_supervisor(job, log)
    try:
        around = {
            "cwd": os.getcwd(),
            "environ": dict(os.environ),
            "cores": sorted(os.sched_getaffinity(0)),
        }
        process.stdin.write(json.dumps({**job, **around}).encode() + b"\n")
        process.stdin.flush()
        yield process
    finally:
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        log.close()


def run(
    script: str | Path,
    np: int = 2,
    *,
    backend: str = "gloo",
    timeout: float = 600,
    standstill: float = STANDSTILL_SECONDS,
    folder: str | Path | None = None,
    arguments: list[str] | None = None,
    environment: dict[str, str] | None = None,
    quiet: bool = False,
    show_command: bool = True,
    must_succeed: bool = True,
    **options: Any,
) -> RunResult:
    """Run a Python script on ``np`` ranks of this machine and return what came of it.

    Args:
        script: the script's path, or its name in ``source_code/``.
        np: how many ranks to start; more than there are cores is allowed.
        backend: ``"gloo"`` or ``"mpi"``, what Horovod communicates through.
        timeout: seconds after which the whole run is ended.
        standstill: seconds without any computing or printing after which it is ended; four times
            as many while no core of the machine is free, and as long, up to 65 seconds, as the
            ranks had worked before.
        folder: where to look for the script instead.
        arguments: the script's command line, as a list of texts.
        environment: environment variables to add for all ranks.
        quiet: print nothing while it runs.
        show_command: print the line that anyone could type, unless it is quiet.
        must_succeed: raise RunFailed unless every rank ended well.
        **options: more of the script's command line: ``epochs=3`` becomes ``--epochs 3``.

    Raises:
        BadInput: an argument is wrong; nothing was started.
        RunFailed: a rank failed, or a limit was reached. All processes are gone by then.
        KeyboardInterrupt: the run was interrupted. All processes are gone by then.
    """
    if backend not in BACKENDS:
        raise BadInput(f"backend must be one of {', '.join(BACKENDS)}; got {backend!r}")
    job = {
        "np": checked_np(np),
        "script": str(find_script(script, folder)),
        "backend": backend,
        "timeout": checked_limit(timeout, "timeout"),
        "standstill": checked_limit(standstill, "standstill"),
        "arguments": [*(arguments or []), *arguments_from(options)],
        "environment": environment or {},
    }
    prepare(job)
    job["folder"] = tempfile.mkdtemp(prefix="hvdcourse-")
    try:
        command = equivalent_command(job)
        with RunDisplay(command if show_command else None, quiet=quiet) as display:
            events = follow(job, display)
        result = collect_result(command, job, events, RunFolder(job["folder"]))
    finally:
        shutil.rmtree(job["folder"], ignore_errors=True)
    if must_succeed and not result.ok:
        raise RunFailed(result)
    return result


def follow(job: dict[str, Any], display: RunDisplay) -> list[dict[str, Any]]:
    """Run the job under a supervisor, show its events as they come, and return them all."""
    events = []
    seconds = min(job["timeout"] + LATE_SECONDS, threading.TIMEOUT_MAX)
    with supervised(job) as process:
        guard = threading.Timer(seconds, process.kill)
        guard.daemon = True
        guard.start()
        try:
            for line in process.stdout:
                events.append(json.loads(line))
                display.show(events[-1])
        finally:
            guard.cancel()
    if not events or events[-1]["event"] != "ended":
        log = (Path(job["folder"]) / "supervisor.log").read_text(errors="replace").strip()
        reason = "the launcher failed" if "Traceback" in log else "the launcher was killed"
        events.append({"event": "ended", "reason": reason, "log": log})
    return events
