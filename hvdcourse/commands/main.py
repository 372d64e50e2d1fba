"""The ``hvdcourse`` command."""

import io
import json
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from hvdcourse.checks.check import SECONDS
from hvdcourse.checks.check import check as check_exercise
from hvdcourse.checks.learner_files import reset as reset_script
from hvdcourse.checks.learner_files import solution_of_step
from hvdcourse.checks.manifest import CHALLENGE, EXERCISES, find_exercise
from hvdcourse.checks.progress import all_progress, next_hints, progress_table
from hvdcourse.checks.verdict import NotRemembered
from hvdcourse.cluster.plan import ClusterError
from hvdcourse.commands.cluster import app as cluster_app
from hvdcourse.commands.doctor import examine
from hvdcourse.errors import BadInput, checked_limit
from hvdcourse.launch.result import RunFailed
from hvdcourse.launch.run import checked_np
from hvdcourse.launch.run import run as run_script
from hvdcourse.machine.signals import exit_when_terminated

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Scaling Deep Learning with Horovod: run scripts on ranks, and check exercises.",
)

app.add_typer(cluster_app, name="cluster")

Name = Annotated[str, typer.Argument(help="The exercise, such as mpi_concepts.")]
# The exit status of typer for a command line that it cannot read.
MISUSED = 2

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def console() -> Console:
    """Return a console for stdout; without a terminal it is wide enough for the tables."""
    return Console(width=None if sys.stdout.isatty() else 110, highlight=False)


def step_numbers(steps: str | None) -> range | None:
    """Return which steps "2" or "1-7" are; None for all. Raises BadInput for anything else."""
    if steps is None:
        return None
    first, dash, last = steps.partition("-")
    if not (first.isdecimal() and (last if dash else first).isdecimal()):
        raise BadInput(f"steps are a number, such as 2, or several, such as 1-7; got {steps!r}")
    return range(int(first), int(last or first) + 1)


@app.command("list")
def list_exercises() -> None:
    """List the exercises and their steps."""
    table = Table("exercise, notebook", "steps")
    for exercise in EXERCISES:
        steps = "\n".join(f"{step.number}. {step.title}" for step in exercise.steps)
        table.add_row(f"{exercise.name}\n{exercise.notebook}", steps, end_section=True)
    console().print(table)


@app.command()
def run(
    script: Annotated[str, typer.Argument(help="A path, or a name in source_code/.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="The script's, after --.")] = None,
    np: Annotated[str, typer.Option("-np", "--np", help="How many ranks to start.")] = "2",
    backend: Annotated[str, typer.Option(help="gloo or mpi.")] = "gloo",
    timeout: Annotated[str, typer.Option(help="Seconds until the run is ended.")] = "600",
    standstill: Annotated[str, typer.Option(help="Seconds of standstill, or more.")] = "60",
) -> None:
    """Run a script on N ranks of this machine: hvdcourse run SCRIPT -np 2 -- --epochs 3."""
    try:
        run_script(
            script,
            checked_np(np),
            backend=backend,
            timeout=checked_limit(timeout, "timeout"),
            standstill=checked_limit(standstill, "standstill"),
            arguments=arguments or [],
        )
    except RunFailed as failed:
        print(f"\nerror: {failed}", file=sys.stderr)
        raise typer.Exit(failed.result.exit_status) from None


@app.command()
def study(
    grid: Annotated[Path, typer.Argument(help="The conditions and seeds, in YAML.")],
    records: Annotated[Path, typer.Option(help="The file with one JSON line a finished run.")],
    timeout: Annotated[str, typer.Option(help="Seconds for all runs of as many ranks.")] = "600",
) -> None:
    """Train a grid of conditions x seeds; runs that are recorded already are not run again."""
    from hvdcourse.commands.study import run_study

    raise typer.Exit(run_study(grid, records, timeout))


@app.command()
def check(
    name: Name,
    step: Annotated[
        str | None, typer.Argument(help="A step, or several, such as 1-7; without it, all.")
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="Where the script is.")] = None,
    hint: Annotated[
        int, typer.Option("--hint", count=True, help="Show a hint; three times: all.")
    ] = 0,
    timeout: Annotated[str, typer.Option(help="Seconds for all of its runs.")] = f"{SECONDS:g}",
    as_json: AsJson = False,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
) -> None:
    """Run an exercise on real ranks and judge what it does. Exit status 0: everything is met."""
    verdict = check_exercise(
        name,
        step_numbers(step),
        folder=folder,
        hint=hint,
        timeout=checked_limit(timeout, "timeout"),
    )
    if junit is not None:
        verdict.write_junit(junit)
    if as_json:
        print(json.dumps(verdict.to_dict(), indent=2))
    else:
        console().print(verdict)
    if verdict.not_remembered:
        raise NotRemembered(verdict.not_remembered)
    raise typer.Exit(0 if verdict.passed else 1)


@app.command()
def challenge(
    folder: Annotated[Path | None, typer.Option(help="Where artists_resnet.py is.")] = None,
    data: Annotated[str, typer.Option(help="painters, or a folder of images.")] = "painters",
    name: Annotated[str | None, typer.Option(help="Put the score on the leaderboard.")] = None,
    leaderboard: Annotated[Path | None, typer.Option(help="Its file; classes share it.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Only show the leaderboard.")] = False,
    as_json: AsJson = False,
) -> None:
    """Judge artists_resnet.py in up to 2 minutes. Exit status 0: every part has points."""
    from hvdcourse.commands.challenge import judge_and_show, show_leaderboard

    if show:
        show_leaderboard(console(), leaderboard, as_json)
        return
    score = judge_and_show(console(), folder, data, name, leaderboard, as_json)
    raise typer.Exit(0 if score.passed else 1)


@app.command()
def predict(
    model: Annotated[str, typer.Option(help="resnet50, resnet101, inception_v3 or vgg16.")],
    gpus: Annotated[str, typer.Option(help="The largest number of GPUs.")] = "512",
    link: Annotated[str, typer.Option(help="Between hosts: a rate, such as 25gbit.")] = "25gbit",
    inside: Annotated[str, typer.Option(help="Inside a host: pcie, nvlink, nvlink4.")] = "pcie",
    gpus_per_host: Annotated[str, typer.Option(help="How many GPUs a host has.")] = "4",
    batch: Annotated[str | None, typer.Option(help="Images per GPU; strong: of all.")] = None,
    scaling: Annotated[str, typer.Option(help="weak or strong.")] = "weak",
    fp16: Annotated[bool, typer.Option("--fp16", help="Send gradients in 16 bits.")] = False,
    fusion_mb: Annotated[str, typer.Option(help="The fusion buffer; 0 turns it off.")] = "128",
    cycle_ms: Annotated[str, typer.Option(help="Horovod's cycle.")] = "1",
    algorithm: Annotated[str, typer.Option(help="Of the allreduce.")] = "ring_or_tree",
    faster: Annotated[str, typer.Option(help="Times as fast as a Pascal GPU.")] = "1",
    delay_ms: Annotated[str, typer.Option(help="Mean delay of each GPU, by chance.")] = "0",
    critical_batch: Annotated[str | None, typer.Option(help="Images; see lesson 4.")] = None,
    as_json: AsJson = False,
) -> None:
    """Predict how a training scales, from published numbers; lesson 5 says how."""
    from hvdcourse.commands.predict import show_prediction

    settings = {
        "link": link,
        "inside": inside,
        "gpus_per_host": gpus_per_host,
        "batch": batch,
        "scaling": scaling,
        "fp16": fp16,
        "fusion_mb": fusion_mb,
        "cycle_ms": cycle_ms,
        "algorithm": algorithm,
        "faster": faster,
        "delay_ms": delay_ms,
        "critical_batch": critical_batch,
    }
    show_prediction(console(), model, gpus, as_json, settings)


@app.command()
def hint(name: Name, step: Annotated[str, typer.Argument(help="The step's number.")]) -> None:
    """Give a hint for one step, and one more each time: a question, a place, the code's shape."""
    exercise = find_exercise(name)
    exercise_step = exercise.step(step)
    print(f"{exercise_step.title}\n\n{next_hints(exercise.name, exercise_step.number)}")


@app.command()
def solution(name: Name, step: Annotated[str, typer.Argument(help="The step's number.")]) -> None:
    """Show how the solution does one step."""
    exercise = find_exercise(name)
    code = solution_of_step(exercise, exercise.step(step).number)
    console().print(Syntax(code, "python", background_color="default"))


@app.command()
def reset(name: Name) -> None:
    """Restore an exercise's original script; yours is kept as a dated copy."""
    script = name.removesuffix(".py")
    script = script if script == CHALLENGE else find_exercise(name).name
    copy = reset_script(script)
    print(f"source_code/{script}.py is the original again.")
    if copy is not None:
        print(f"Your version: {copy}")


@app.command()
def progress(as_json: AsJson = False) -> None:
    """Show which steps were met at the last check."""
    rows = all_progress()
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        console().print(progress_table(rows))


@app.command("class")
def show_progress_of_class(
    folders: Annotated[list[Path], typer.Argument(help="Learners' folders, or one with all.")],
    names: Annotated[bool, typer.Option("--names", help="Show the learners' names.")] = False,
    picture: Annotated[Path | None, typer.Option(help="Draw it, as .png or .svg.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show where learners are, and which steps stop them. Exit status 0: every file was read."""
    from hvdcourse.commands.classroom import show_class

    raise typer.Exit(0 if show_class(console(), folders, names, picture, as_json) else 1)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Examine this machine: what it has, and whether two ranks can talk over Gloo and MPI."""
    diagnosis = examine()
    if as_json:
        print(json.dumps(diagnosis.to_dict(), indent=2))
    else:
        diagnosis.print(console())
    raise typer.Exit(0 if diagnosis.healthy else 1)


def main() -> None:
    """Run the command; a mistake of the user's ends in one clear line, not in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that has no Greek letters shows question marks in their places.
            stream.reconfigure(errors="replace")
    exit_when_terminated()
    try:
        app(prog_name="hvdcourse")
    except BadInput as error:
        end_with(error, 2)
    except BrokenPipeError:
        os._exit(1)
    except (OSError, ClusterError, NotRemembered) as error:
        end_with(error, 1)
    except SystemExit as ended:
        if ended.code == MISUSED and "--json" in sys.argv[1:]:
            print_error("the command line is wrong; stderr says what of it")
        raise
    except Exception as error:
        if "--json" in sys.argv[1:]:
            print_error(f"{type(error).__name__}: {error}")
        raise


def end_with(error: Exception, status: int) -> NoReturn:
    """End with the error's text, as JSON for a program that has not got any JSON yet."""
    if "--json" in sys.argv[1:] and not isinstance(error, NotRemembered):
        print_error(str(error))
    else:
        print(f"error: {error}", file=sys.stderr)
    sys.exit(status)


def print_error(text: str) -> None:
    """Print an error as JSON."""
    print(json.dumps({"passed": False, "error": text}, indent=2))
