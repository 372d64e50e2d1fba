"""Run a script on N ranks: ``run("fashion_mnist.py", np=2, epochs=3)``."""

import multiprocessing
import os
import shlex
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from hvdcourse.errors import BadInput, checked_limit, whole_number
from hvdcourse.launch.collect import collect_result
from hvdcourse.launch.command_line import BACKENDS, arguments_from, local_command
from hvdcourse.launch.display import RunDisplay
from hvdcourse.launch.job import Caller, Event, Job, RunEnd
from hvdcourse.launch.process import can_fork, start_process
from hvdcourse.launch.result import RunFailed, RunResult
from hvdcourse.machine.cores import pick_cores
from hvdcourse.machine.gpus import enough_gpus, gpus_for
from hvdcourse.machine.processes import end_all, processes_of_session
from hvdcourse.machine.signals import undisturbed
from hvdcourse.rank.run_folder import RunFolder

SUPERVISOR = "hvdcourse.launch.supervisor"
SCRIPT_FOLDERS = (".", "source_code", "../source_code")
STANDSTILL_SECONDS = 60.0
# How long the supervisor has to clean up after it was told to stop.
STOP_SECONDS = 8.0
# A supervisor that is so late after the time limit is stuck itself.
LATE_SECONDS = 30.0


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


def checked_cores(cores: int | None, np: int) -> list[int]:
    """Return ``cores`` of this machine's cores; none, which stands for all, if ranks have GPUs."""
    if cores is None:
        return []
    count = whole_number(cores, "cores", len(os.sched_getaffinity(0)))
    return [] if gpus_for(np) else pick_cores(count)


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


def run(
    script: str | Path,
    np: int = 2,
    *,
    backend: str = "gloo",
    cores: int | None = None,
    timeout: float = 600,
    standstill: float = STANDSTILL_SECONDS,
    folder: str | Path | None = None,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    quiet: bool = False,
    must_succeed: bool = True,
    **options: Any,
) -> RunResult:
    """Run a Python script on ``np`` ranks of this machine and return what came of it.

    It prints the ``horovodrun`` line that it runs; anyone can type the same in a terminal. The
    ranks' temporary files are gone after it.

    Args:
        script: the script's path, or its name in ``source_code/``.
        np: how many ranks to start; more than there are cores is allowed.
        backend: ``"gloo"`` or ``"mpi"``, what Horovod communicates through.
        cores: how many processor cores all ranks together get; without it, every one. On a machine
            with a GPU for each rank, where a device is a GPU, they get every one anyway.
        timeout: seconds after which the whole run is ended.
        standstill: seconds without any computing or printing after which it is ended; four times
            as many while no core of the machine is free, and as long, up to 65 seconds, as the
            ranks had worked before.
        folder: where to look for the script instead.
        arguments: the script's command line, as a list of texts: ``["--folder", "mine"]``, where
            ``run`` has an argument of that name.
        environment: environment variables to add for all ranks.
        quiet: print nothing while it runs.
        must_succeed: raise RunFailed unless every rank ended well.
        **options: more of the script's command line: ``epochs=3`` becomes ``--epochs 3``.

    Raises:
        BadInput: an argument is wrong; nothing was started.
        RunFailed: a rank failed, or a limit was reached. All processes are gone by then.
        KeyboardInterrupt: the run was interrupted. All processes are gone by then.
    """
    job = checked_job(
        script,
        np,
        backend=backend,
        timeout=timeout,
        standstill=standstill,
        folder=folder,
        arguments=arguments,
        environment=environment,
        **options,
    )
    kept_to = checked_cores(cores, job.np)
    command = local_command(job.np, job.backend, job.script, job.arguments, kept_to)
    return run_job(replace(job, command=command), quiet, must_succeed)


def run_quickly(
    script: str | Path,
    np: int = 2,
    *,
    hosts: Sequence[int] = (),
    cores: int | None = None,
    quiet: bool = True,
    must_succeed: bool = True,
    **options: Any,
) -> RunResult:
    """Do what ``run`` does without calling ``horovodrun``: the quick start of checks and studies.

    From the second run of a process on, ranks over Gloo are forked from one that has imported
    TensorFlow. It prints no command. With ``hosts``, such as (2, 1), Horovod over Gloo is told that
    the ranks are on hosts with so many of them each, as their local and cross ranks then say.
    Everything else, ``options`` among it, is as for ``run``.
    """
    job = checked_job(script, np, **options)
    kept_to = checked_cores(cores, job.np)
    return run_job(replace(job, hosts=tuple(hosts), cores=kept_to), quiet, must_succeed)


def checked_job(
    script: str | Path,
    np: Any,
    *,
    backend: str = "gloo",
    timeout: Any = 600,
    standstill: Any = STANDSTILL_SECONDS,
    folder: str | Path | None = None,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> Job:
    """Return the job, as yet without a run folder. Raises BadInput for what cannot be run."""
    if backend not in BACKENDS:
        raise BadInput(f"backend must be one of {', '.join(BACKENDS)}; got {backend!r}")
    ranks = checked_np(np)
    return Job(
        np=ranks,
        script=str(find_script(script, folder)),
        arguments=[*arguments, *arguments_from(options)],
        backend=backend,
        environment={**enough_gpus(ranks), **(environment or {})},
        timeout=checked_limit(timeout, "timeout"),
        standstill=checked_limit(standstill, "standstill"),
        folder="",
    )


def run_job(job: Job, quiet: bool, must_succeed: bool) -> RunResult:
    """Run a job in a folder that is gone afterwards, and return what came of it."""
    folder = os.path.join(tempfile.gettempdir(), f"hvdcourse-{uuid.uuid4().hex[:12]}")
    job = replace(job, folder=folder)
    try:
        with RunDisplay(typed(job), quiet=quiet) as display:
            events = follow(job, display)
        result = collect_result(job, events, RunFolder(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if must_succeed and not result.ok:
        raise RunFailed(result)
    return result


def typed(job: Job) -> str:
    """Return what to type in a shell for the same; empty where the supervisor starts the ranks."""
    settings = [f"{name}={shlex.quote(value)}" for name, value in job.environment.items()]
    return " ".join([*settings, shlex.join(job.command)]) if job.command else ""


def follow(job: Job, display: RunDisplay) -> list[Event]:
    """Run the job under a supervisor, show its events as they come, and return them all.

    However this ends, nothing of the run is left when it returns.
    """
    events: list[Event] = []
    ours, theirs = multiprocessing.Pipe()
    forked = not job.command and can_fork(job.backend, {**os.environ, **job.environment})
    with ours:
        with theirs:
            arguments = (job, Caller.this_process(), theirs)
            process = start_process(SUPERVISOR, arguments, forked=forked)
        seconds = min(job.timeout + LATE_SECONDS, threading.TIMEOUT_MAX)
        guard = threading.Timer(seconds, process.kill)
        guard.daemon = True
        guard.start()
        try:
            for event in events_from(ours, process):
                events.append(event)
                display.show(event)
        finally:
            with undisturbed():
                guard.cancel()
                ours.close()
                process.join(STOP_SECONDS)
                if process.is_alive():
                    process.kill()
                    process.join()
    if not events or not isinstance(events[-1], RunEnd):
        # A supervisor that was killed cannot end what horovodrun has started through a shell.
        end_all(lambda: processes_of_session(process.pid), grace=2.0)
        events.append(end_without_word(job))
    return events


def events_from(connection: Connection, process: BaseProcess) -> Iterator[Event]:
    """Yield what a supervisor sends, up to the end of the run, or its own."""
    event: Event | None = None
    while not isinstance(event, RunEnd):
        # Not the connection alone: what forks from this process meanwhile may hold it open.
        wait([connection, process.sentinel])
        try:
            if not connection.poll():
                return
            event = connection.recv()
        except (EOFError, OSError):
            return
        yield event


def end_without_word(job: Job) -> RunEnd:
    """Return the end of a run whose supervisor has not told it."""
    log = Path(job.folder) / "supervisor.log"
    text = log.read_text(errors="replace").strip() if log.exists() else ""
    reason = "the launcher failed" if "Traceback" in text else "the launcher was killed"
    return RunEnd(reason=reason, log=text)
