"""Tries the course on a real JupyterHub: `make class-server`.

Twenty learners log in at once, and eight of them check their scripts at once, in notebooks and in
terminals. Each must get the right verdict, and a copy and progress of their own, and nothing may be
left over. Prints the load, and who waited how long. Exit status 0: all of this was so.
"""

import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from learner import Learner
from load import Load, memory_used
from rich.console import Console
from rich.table import Table
from server import Server, class_server, read_only_for_root, state_of

from hvdcourse.checks.manifest import EXERCISES
from hvdcourse.checks.queue import CORES_OF_A_CHECK
from hvdcourse.machine.cores import usable_cores
from hvdcourse.paths import SOLUTIONS

NAMES = [f"learner{number:02d}" for number in range(1, 21)]
PLACE = re.compile(r"waiting: (\d+) checks? (?:is|are) ahead of yours")
# Exercise, how many steps the learner has done, and where the check is started.
WORK = (
    ("ring_allreduce", 4, "terminal"),
    ("ring_allreduce", 0, "notebook"),
    ("mpi_concepts", 8, "notebook"),
    ("mpi_concepts", 3, "terminal"),
    ("fashion_mnist", 10, "notebook"),
    ("fashion_mnist", 5, "terminal"),
    ("custom_loop", 5, "terminal"),
    ("custom_loop", 0, "notebook"),
)
# Checked before the others by the last learner, to compare with.
ALONE = ("fashion_mnist", 10, "notebook")
CELL = """
import json
from hvdcourse import check
verdict = check("{}", folder="../source_code")
open("../verdict.json", "w").write(json.dumps(verdict.to_dict()))
"""


@dataclass(frozen=True)
class Checked:
    """One learner's check: what it said, how long it took, and the places seen while waiting."""

    exercise: str
    done: int
    place: str
    verdict: dict
    seconds: float
    places: list[int]

    @property
    def waited(self) -> float:
        """Seconds before the check began: in the queue, and until its imports were done."""
        return self.seconds - self.ran

    @property
    def ran(self) -> float:
        """Seconds that its runs took."""
        return self.verdict["seconds"]

    @property
    def is_right(self) -> bool:
        """Whether exactly the steps that were done passed, and no run failed or was ended."""
        passed = [step["number"] for step in self.verdict["steps"] if step["passed"]]
        return passed == list(range(1, self.done + 1)) and not self.verdict["failure"]


def check_as(learner: Learner, exercise: str, done: int, place: str) -> Checked:
    """Have a learner save a script of which some steps are done, and check it."""
    if done:
        script = SOLUTIONS / f"{exercise}_after_step_{done:02d}.py"
        learner.save(f"source_code/{exercise}.py", script.read_text())
    began = time.monotonic()
    if place == "notebook":
        shown = learner.run_in_kernel(CELL.format(exercise))
    else:
        shown = learner.run_in_terminal(f"hvdcourse check {exercise} --json > verdict.json")
    seconds = time.monotonic() - began
    try:
        verdict = json.loads(learner.read("verdict.json"))
    except OSError:
        raise RuntimeError(f"{learner.name}'s check has no verdict:\n{shown}") from None
    return Checked(exercise, done, place, verdict, seconds, list(map(int, PLACE.findall(shown))))


def at_once(do: Callable[..., object], *arguments: Sequence) -> list:
    """Call a function with each of the arguments, all at the same time, and return the results."""
    with ThreadPoolExecutor(len(arguments[0])) as pool:
        return list(pool.map(do, *arguments))


def own_files(server: Server) -> dict[str, bool]:
    """Tell of each demand on copies and progress whether it is met."""
    progress, scripts = {}, {}
    for name in NAMES:
        file = server.copy_of(name) / ".hvdcourse" / "progress.json"
        progress[name] = set(json.loads(file.read_text())) if file.exists() else set()
        scripts[name] = {
            exercise.name
            for exercise in EXERCISES
            if (server.copy_of(name) / "source_code" / f"{exercise.name}.py").read_text()
            != (server.course / "source_code" / f"{exercise.name}.py").read_text()
        }
    work = {**dict(zip(NAMES, WORK, strict=False)), NAMES[-1]: ALONE}
    expected = {name: {work[name][0]} if name in work else set() for name in NAMES}
    edited = {name: expected[name] if name in work and work[name][1] else set() for name in NAMES}
    return {
        "each has a copy of their own, with their edits alone": scripts == edited,
        "each has progress of their own": progress == expected,
    }


def report(results: list[Checked]) -> Table:
    """Return a table of who waited, and for how long."""
    table = Table("exercise", "steps done", "checked in a", "verdict", "places", "waited", "ran")
    for checked in sorted(results, key=lambda checked: checked.waited):
        verdict = "right" if checked.is_right else "WRONG"
        places = " ".join(map(str, checked.places))
        seconds = f"{checked.waited:.0f} s", f"{checked.ran:.0f} s"
        table.add_row(checked.exercise, str(checked.done), checked.place, verdict, places, *seconds)
    return table


def memory_in_words(idle: int, after: int) -> str:
    """Return what a server holds in memory, and what a notebook does that has checked something."""
    notebooks = sum(work[2] == "notebook" for work in (*WORK, ALONE))
    server, notebook = (idle / len(NAMES)) / 2**20, (after - idle) / notebooks / 2**20
    return f"memory: {server:.0f} MiB a server, {notebook:.0f} more for a notebook after a check"


def try_class(server: Server, console: Console) -> dict[str, bool]:
    """Let the class work, print what it did to the machine, and tell which demands were met."""
    before = state_of(server.course)
    learners = [Learner(server.url, name) for name in NAMES]
    with Load() as load:
        at_once(lambda learner: learner.log_in(server.password), learners)
        at_once(Learner.start, learners)
    console.print(f"{len(NAMES)} learners logged in and started a server each: {load}")
    idle = memory_used()
    alone = check_as(learners[-1], *ALONE)
    with Load() as load:
        results: list[Checked] = at_once(check_as, learners, *zip(*WORK, strict=True))
    console.print(f"{len(WORK)} checks at once: {load}", report(results))
    console.print(f"{alone.exercise}, {alone.done} steps, with nobody waiting: {alone.ran:.0f} s")
    console.print(memory_in_words(idle, memory_used()))
    own = own_files(server)
    at_once(Learner.stop, learners)
    left = server.stop()
    for process in left:
        console.print(f"left over: {process}", markup=False)
    return {
        "every verdict is right, and no run was ended": all(
            checked.is_right for checked in (alone, *results)
        ),
        "whoever waited saw the place in the queue": any(checked.places for checked in results)
        or usable_cores() // CORES_OF_A_CHECK >= len(WORK),
        **own,
        "nobody has written to the course": state_of(server.course) == before,
        "nothing is left over": not left,
    }


def main() -> None:
    """Try it, and end with status 1 where a demand was not met."""
    read_only_for_root()
    console = Console(width=100, highlight=False)
    with class_server() as server:
        met = try_class(server, console)
    for demand, is_met in met.items():
        console.print(f"{'yes' if is_met else 'NO '}  {demand}")
    sys.exit(0 if all(met.values()) else 1)


if __name__ == "__main__":
    main()
