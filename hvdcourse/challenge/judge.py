"""The challenge of lesson 7: run a program in every way that counts, and give it a score."""

import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hvdcourse.challenge.evidence import (
    KILLED_IN,
    LARGER,
    SINGLE_BATCH,
    SMALL_EPOCHS,
    Evidence,
    Gallery,
)
from hvdcourse.challenge.parts import PARTS, Part
from hvdcourse.challenge.report import report_of
from hvdcourse.challenge.score import PartScore, Score
from hvdcourse.checks.evidence import ObservedRun, Unmet, counted
from hvdcourse.checks.manifest import CHALLENGE
from hvdcourse.checks.queue import turn
from hvdcourse.checks.verdict import told_of
from hvdcourse.data.image_folder import ImageFolder, find_images, read_images
from hvdcourse.data.painters import image_folder
from hvdcourse.data.painting import PIXELS
from hvdcourse.errors import BadInput
from hvdcourse.launch.command_line import arguments_from
from hvdcourse.launch.result import RunResult
from hvdcourse.launch.run import find_script, run_quickly
from hvdcourse.paths import SOLUTIONS, SOURCE_CODE
from hvdcourse.rank.thumbnails import all_views
from hvdcourse.rank.variables import KILL_VARIABLE, OBSERVE_VARIABLE

UNTOUCHED = SOLUTIONS / f"{CHALLENGE}_before.py"
LARGE_EPOCHS, LARGE_RANKS = 14, 2
# Of the small gallery: numbers that no number of ranks divides.
SMALL_TRAIN, SMALL_TEST, BASELINE_TRAIN, BASELINE_EPOCHS = 131, 55, 1600, 4
# Where others compute too, ranks that wait for a core look as if they stood still.
SMALL_SECONDS, LARGE_SECONDS, STANDSTILL_SECONDS = 150.0, 400.0, 40.0

# Without these parts the large run, the longest one, could not get any points.
BEFORE_LARGE = ("runs", "shares", "gradients")
NOT_YET = f"not made yet: first these parts must have points: {', '.join(BEFORE_LARGE)}"
SMALL_RUNS = ("alone", "killed", "resumed", "four")

Say = Callable[[str], None]


def challenge(
    folder: str | Path | None = None,
    *,
    data: str | Path = "painters",
    say: Say = lambda line: None,
) -> Score:
    """Run ``artists_resnet.py`` six times, and return its score: in up to 2 minutes on 2 cores.

    Args:
        folder: where the program is; ``source_code/`` of the project without it.
        data: ``"painters"``, or a folder of images, at least 131 to train and 55 to test.
        say: is given a line before each run, and while it waits in the queue of HVDCOURSE_QUEUE.

    Raises:
        BadInput: no such program or images, or a syntax error in the program.
    """
    script = find_script(f"{CHALLENGE}.py", SOURCE_CODE if folder is None else folder)
    images = find_images(image_folder(data))
    if len(images.train_paths) < SMALL_TRAIN or len(images.test_paths) < SMALL_TEST:
        raise BadInput(
            f"{data}: {SMALL_TRAIN} images to train and {SMALL_TEST} to test are the least that "
            f"can be judged; it has {len(images.train_paths)} and {len(images.test_paths)}"
        )
    with turn(say), tempfile.TemporaryDirectory(prefix="hvdcourse-challenge-") as scratch:
        started = time.monotonic()
        runner = Runner(script, images, Path(scratch), say)
        runner.run_small()
        points = {part.name: score_of(part, runner.evidence).points for part in PARTS}
        if all(points[name] for name in BEFORE_LARGE):
            runner.run_large()
        else:
            runner.evidence.failures["large"] = NOT_YET
        # Here, while the files are there that the program has written.
        parts = [score_of(part, runner.evidence) for part in PARTS]
        seconds = time.monotonic() - started
    return Score(str(script), parts, seconds, report_of(runner.evidence))


def score_of(part: Part, evidence: Evidence) -> PartScore:
    """Judge one part. Whatever is not shown by evidence has no points."""
    try:
        share, measured = part.examine(evidence) or (1.0, "")
        return PartScore(
            part.name, part.title, round(part.points * share, 1), part.points, measured
        )
    except Unmet as unmet:
        why = told_of(unmet.expected, unmet.seen)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = f"the judge could not read what was reported: {type(error).__name__}: {error}"
    return PartScore(part.name, part.title, 0.0, part.points, why)


class Runner:
    """Makes the runs that the parts of the score look at."""

    def __init__(self, script: Path, images: ImageFolder, scratch: Path, say: Say):
        self.script, self.images, self.scratch, self.say = script, images, scratch, say
        self.evidence = Evidence()

    def run_small(self, runs: Collection[str] = SMALL_RUNS, most_ranks: int = 4) -> None:
        """Run the program on a small gallery: on 1 rank, on 2 with a kill, and on 4.

        The project's tests leave some of these runs out, and take fewer ranks.
        """
        folder, gallery = self.copy_some("small", SMALL_TRAIN, SMALL_TEST)
        arguments = {"data": str(folder), "epochs": SMALL_EPOCHS, "batch_size": SINGLE_BATCH}
        saving = {**arguments, "folder": str(self.scratch / "saved" / "{rank}")}
        # In the middle of an epoch, and on every rank, as where a machine loses its power.
        kill = str(int((KILLED_IN - 0.5) * SMALL_TRAIN / 2))
        # On two hosts, as far as Horovod knows: a local rank is no rank there.
        half = most_ranks // 2
        if "alone" in runs:
            self.run("alone", gallery, (1,), arguments)
        if "killed" in runs:
            self.run("killed", gallery, (1, 1), saving, killed_after=kill)
        if "resumed" in runs:
            self.run("resumed", gallery, (1, 1), saving)
        if "four" in runs:
            self.run("four", gallery, (most_ranks - half, half), arguments)

    def run_large(self) -> None:
        """Run the untouched program for its speed, and this one on all images."""
        folder, gallery = self.copy_some("baseline", BASELINE_TRAIN, SMALL_TEST)
        arguments = {"data": str(folder), "epochs": BASELINE_EPOCHS, "batch_size": SINGLE_BATCH}
        self.run("baseline", gallery, (1,), arguments, script=UNTOUCHED, observe="timed challenge")
        arguments = {
            "data": str(self.images.train_paths[0].parents[2]),
            "epochs": LARGE_EPOCHS,
            "batch_size": SINGLE_BATCH * LARGER // LARGE_RANKS,
        }
        self.run(
            "large", gallery_of(self.images, training_views=False), (LARGE_RANKS,), arguments,
            observe="timed challenge", timeout=LARGE_SECONDS,
        )  # fmt: skip

    def copy_some(self, name: str, train: int, test: int) -> tuple[Path, Gallery]:
        """Copy so many of the images, some of each painter; return the folder and its gallery."""
        folder = self.scratch / name
        parts = (
            ("train", self.images.train_paths, self.images.train_labels, train),
            ("test", self.images.test_paths, self.images.test_labels, test),
        )
        for part, paths, labels, count in parts:
            for number in some_of_each(labels, count):
                place = folder / part / self.images.classes[labels[number]]
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(paths[number], place)
        return folder, gallery_of(find_images(folder))

    def run(
        self,
        name: str,
        gallery: Gallery,
        hosts: tuple[int, ...],
        arguments: dict[str, Any],
        *,
        script: Path | None = None,
        observe: str = "challenge",
        timeout: float = SMALL_SECONDS,
        killed_after: str = "",
    ) -> None:
        """Make one run and keep it as evidence, or keep why it did not end as it must."""
        ranks = counted(sum(hosts), "rank")
        self.say(f"run {name!r}: {ranks}, {gallery.count} images, {arguments['epochs']} epochs")
        result = run_quickly(
            script or self.script,
            np=sum(hosts),
            hosts=hosts,
            timeout=timeout,
            standstill=STANDSTILL_SECONDS,
            environment={OBSERVE_VARIABLE: observe, KILL_VARIABLE: killed_after},
            must_succeed=False,
            arguments=arguments_from(arguments),
        )
        self.evidence.galleries[name] = gallery
        as_it_must = was_killed(result) if killed_after else result.ok
        if as_it_must:
            self.evidence.runs[name] = ObservedRun(result, arguments)
        elif result.ok:
            self.evidence.failures[name] = "it ended before it had trained on enough images"
        else:
            self.evidence.failures[name] = f"on {ranks}: {result.explain()}{uneven_steps(result)}"


def uneven_steps(result: RunResult) -> str:
    """Return a line with the steps that the ranks have begun, where some began more."""
    begun = [sum(one.get("note") == "batch" for one in rank.evidence) for rank in result.ranks]
    if len(set(begun)) == 1:
        return ""
    steps = ", ".join(f"rank {rank}: {count}" for rank, count in enumerate(begun))
    return f"\nThe ranks began different numbers of steps: {steps}"


def was_killed(result: RunResult) -> bool:
    """Tell whether the kill ended the run: a rank that was a step behind may fail by its loss."""
    statuses = [rank.status for rank in result.ranks]
    return -signal.SIGKILL in statuses and 0 not in statuses


def gallery_of(images: ImageFolder, training_views: bool = True) -> Gallery:
    """Return what is known of these images; of training images their number alone if need be."""
    return Gallery(
        painters=images.classes,
        count=len(images.train_paths),
        train_views=views_of(images.train_paths) if training_views else np.empty(0),
        test_views=views_of(images.test_paths),
        test_labels=images.test_labels,
    )


def views_of(paths: tuple[Path, ...]) -> np.ndarray:
    """Return the thumbnails of image files: see ``all_views``."""
    return all_views(read_images(paths, (PIXELS, PIXELS)))


def some_of_each(labels: np.ndarray, count: int) -> np.ndarray:
    """Return which images to take: as equally many of each painter as there are, by lot."""
    order = np.random.default_rng().permutation(len(labels))
    earlier = pd.Series(order).groupby(labels[order]).cumcount()
    return order[earlier.argsort(kind="stable")][:count]
