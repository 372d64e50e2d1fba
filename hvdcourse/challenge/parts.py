"""The parts of the challenge's score: what a program must do, and what each part is worth.

A part looks at some of the judge's runs, by their names: see ``evidence``.
"""

import reprlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from hvdcourse.challenge.evidence import (
    KILLED_IN,
    LARGER,
    SINGLE_BATCH,
    SMALL_EPOCHS,
    Evidence,
    Gallery,
)
from hvdcourse.challenge.measures import (
    counts_by_painter,
    images_by_step,
    images_per_second,
    last_answers,
    steps_an_epoch,
)
from hvdcourse.checks.evidence import (
    ObservedRun,
    Unmet,
    counted,
    demand,
    demand_of_run,
    named_ranks,
)
from hvdcourse.checks.exercises import training
from hvdcourse.checks.exercises.training_notes import (
    SMALL,
    distance,
    far_away,
    notes,
    weights_before,
)
from hvdcourse.rank.thumbnails import recognized

# Points of a share: none up to the first number, all from the second one on.
THROUGHPUT, ACCURACY = (1.0, 3.0), (0.5, 0.9)

# The share of a part's points, in 0…1, and what was measured, in words.
Finding = tuple[float, str]


def ended(evidence: Evidence) -> None:
    """The runs ended well, and trained: a program that does nothing ends well, too."""
    # How much is left after a kill is what another part looks at.
    for name, least in (("alone", SMALL_EPOCHS), ("resumed", 1), ("four", SMALL_EPOCHS)):
        steps = [len(rank.notes("step")) for rank in evidence.run(name).ranks]
        demand(
            f"in the run {name!r} every rank trains: one step in an epoch is the least",
            [count >= least for count in steps],
            [f"made {count} steps" for count in steps],
        )


def shares(evidence: Evidence) -> None:
    for name, epochs in (
        ("alone", SMALL_EPOCHS),
        ("killed", KILLED_IN - 1),
        ("four", SMALL_EPOCHS),
    ):
        check_each_image_once(evidence.run(name), evidence.galleries[name], epochs)


def check_each_image_once(run: ObservedRun, gallery: Gallery, epochs: int) -> None:
    """In each of the first epochs the ranks, together, train on each image once."""
    count = gallery.count
    expected = f"in each epoch the {run.np} ranks, together, train on each of {count} images once"
    batches = [notes(rank, "batch") for rank in run.ranks]
    per_epoch = steps_an_epoch(run, count)
    for epoch in range(epochs):
        part = slice(epoch * per_epoch, (epoch + 1) * per_epoch)
        images = [
            [image for batch in of_rank[part] for image in batch["images"]] for of_rank in batches
        ]
        seen = [recognized(of_rank, gallery.train_views).tolist() for of_rank in images]
        times = Counter(chain.from_iterable(seen))
        if times.pop(-1, 0):
            raise Unmet(expected, ["some images are not among those of --data; crops and shifts of "
                                   "images belong into the model, as layers"])  # fmt: skip
        if set(times.values()) != {1} or len(times) != count:
            more = sum(n > 1 for n in times.values())
            together = sum(map(len, seen))
            same = [rank for rank, own in enumerate(seen) if not times.keys() - own]
            raise Unmet(
                expected,
                [
                    f"in {counted(per_epoch, 'step')} of epoch {epoch + 1} the ranks train on "
                    f"{together} images: {len(times)} different ones, {more} more than once",
                    *([f"{named_ranks(same)} train on the same images"] if same[1:] else []),
                ],
            )


def gradients(evidence: Evidence) -> None:
    training.check_mean_gradient(evidence.run("four"))


def start(evidence: Evidence) -> None:
    training.check_same_start(evidence.run("four"))
    training.check_same_end(evidence.run("four"))


def evaluation(evidence: Evidence) -> None:
    """Each test image is evaluated by one rank, and the report is of all of them."""
    run, gallery = evidence.run("four"), evidence.galleries["four"]
    own = [set(last_answers(rank, gallery)) for rank in run.ranks]
    count = len(gallery.test_labels)
    different = len(set().union(*own))
    demand_of_run(
        f"each of the {count} test images is evaluated by one rank",
        different == sum(map(len, own)) == count,
        *(f"rank {rank}: evaluates {len(images)} images" for rank, images in enumerate(own)),
        f"together {different} different ones",
    )
    averages = [np.array(notes(rank, "end")[-1]["averages"]) for rank in run.ranks]
    far = [distance(of_rank, averages[0]) for of_rank in averages]
    demand(
        "all ranks evaluate the same network: the moving averages of its batch normalization, too",
        [away < SMALL for away in far],
        far_away(far, "rank 0's moving averages"),
    )
    counts = counts_by_painter(run, gallery)
    reported = run.ranks[0].reported("report")
    demand(
        "rank 0 reports for each painter how many of all test images are right, exist, and were "
        "given the name",
        [reported == counts],
        [first_difference(reported, counts)],
    )


def first_difference(reported: Any, counts: dict[str, Any]) -> str:
    """Return the first painter for whom a report differs from the counts, in words."""
    if not isinstance(reported, dict) or reported.keys() != counts.keys():
        return f"reports {reprlib.repr(reported)}, and there are the painters {', '.join(counts)}"
    wrong = [name for name, of_painter in counts.items() if reported[name] != of_painter]
    if not wrong:
        return ""
    name = wrong[0]
    return f"reports {reported[name]} as [right, exist, named] of {name}; it is {counts[name]}"


def one_voice(evidence: Evidence) -> None:
    run, gallery = evidence.run("four"), evidence.galleries["four"]
    training.check_one_voice(run)
    lines = "\n".join(run.ranks[0].output)
    missing = [name for name in gallery.painters if lines.count(name) != 1]
    demand(
        "the report names each painter once",
        [not missing],
        [f"{lines.count(name)} lines name {name}" for name in missing[:3]],
    )


def one_writer(evidence: Evidence) -> None:
    training.check_one_writer(evidence.run("killed"))


def resumed(evidence: Evidence) -> None:
    """After the kill it goes on with the epoch that was cut off, and with the same weights."""
    before, after = evidence.run("killed"), evidence.run("resumed")
    left = images_by_step(after).sum() / evidence.galleries["resumed"].count
    most = SMALL_EPOCHS - KILLED_IN + 1
    expected = (
        f"after a kill in epoch {KILLED_IN} of {SMALL_EPOCHS} no complete epoch is lost: at most "
        f"{most} are left to train"
    )
    try:
        check_each_image_once(before, evidence.galleries["killed"], KILLED_IN - 1)
    except Unmet:
        # The kill, too, comes after so many images.
        seen = "epochs are counted by their images, and these are not shared out: see shares"
        raise Unmet(expected, [seen]) from None
    demand_of_run(expected, 0 < left <= most + 1e-6, f"the ranks train {left:.3g} more epochs")
    saved = weights_before(before.ranks[0])[1:]
    far = [
        min(distance(weights_before(rank)[0], weights) for weights in saved) for rank in after.ranks
    ]
    demand(
        "before its first step every rank of the resumed run has weights of the killed one",
        [away < SMALL for away in far],
        far_away(far, "the killed run's weights"),
    )


def throughput(evidence: Evidence) -> Finding:
    own = images_per_second(evidence.run("large"), evidence.galleries["large"])
    base = images_per_second(evidence.run("baseline"), evidence.galleries["baseline"])
    words = f"{own:.0f} images/s, {own / base:.2f} times the untouched program's {base:.0f}"
    return in_proportion(own / base, THROUGHPUT, words)


def accuracy(evidence: Evidence) -> Finding:
    run, gallery = evidence.run("large"), evidence.galleries["large"]
    check_large_batch(run, gallery)
    right, exist, _ = np.transpose(list(counts_by_painter(run, gallery).values()))
    mean = float(np.mean(right / exist))
    all_right = right.sum() / exist.sum()
    words = f"mean of the painters {mean:.3f}; of all test images {all_right:.3f} are right"
    return in_proportion(mean, ACCURACY, words)


def check_large_batch(run: ObservedRun, gallery: Gallery) -> None:
    """The training has as few steps as a batch LARGER times as large has, and averages."""
    count, epochs = gallery.count, run.arguments["epochs"]
    most = epochs * -(-count // (LARGER * SINGLE_BATCH))
    steps = [len(notes(rank, "step")) for rank in run.ranks]
    demand(
        f"at {LARGER} times the batch there are at most {most} steps in {epochs} epochs",
        [made <= most for made in steps],
        [f"made {made} steps" for made in steps],
    )
    traffic = [(rank.allreduced_bytes(), max(notes(rank, "bytes"))) for rank in run.ranks]
    demand(
        "the ranks average their gradients",
        # A third: they may be compressed to half of their bytes on the way.
        [sent > whole / 3 for sent, whole in traffic],
        [f"put {sent} of {whole} bytes into allreduces" for sent, whole in traffic],
    )


def in_proportion(measure: float, scale: tuple[float, float], words: str) -> Finding:
    """Return a measure's share of the points, in proportion between the scale's ends."""
    low, high = scale
    share = float(np.clip((measure - low) / (high - low), 0, 1))
    return share, f"{words} (none of the points up to {low:g}, all from {high:g} on)"


@dataclass(frozen=True)
class Part:
    """A part of the score; ``examine`` raises Unmet where there are no points.

    It returns the share and what was measured, or nothing for all points.
    """

    name: str
    title: str
    points: int
    examine: Callable[[Evidence], Finding | None]


PARTS = (
    Part("runs", "It trains to its end on 1, 2 and 4 ranks", 5, ended),
    Part("shares", "On 1, 2 and 4 ranks, each image is seen once an epoch", 10, shares),
    Part("gradients", "In each step all ranks use the mean of their gradients", 10, gradients),
    Part("start", "All ranks have the same weights, from the start to the end", 10, start),
    Part("evaluation", "Test images are shared out, and the report is of all", 10, evaluation),
    Part("one voice", "There is one report, and the other ranks print nothing", 5, one_voice),
    Part("one writer", "One rank writes checkpoints", 5, one_writer),
    Part("resume", "Killed in an epoch, it goes on with that epoch", 10, resumed),
    Part("throughput", "Images a second, against the untouched program", 15, throughput),
    Part("accuracy", "Test accuracy, mean of the painters, at 16 times the batch", 20, accuracy),
)
