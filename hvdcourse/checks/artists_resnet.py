"""What a program of the challenge must do, and what each part of it is worth.

Each part looks at some of the judge's runs, by their names:

- ``alone``, ``four``: a small gallery, on 1 and on 4 ranks;
- ``killed``, ``resumed``: the same on 2 ranks, all of them killed in epoch KILLED_IN, and resumed;
- ``baseline``: the untouched program, in one process, for its speed;
- ``large``: the whole gallery on 2 ranks, at LARGER times the batch of the untouched program.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hvdcourse.checks import training
from hvdcourse.checks.training import SMALL, distance, far_away, weights_before
from hvdcourse.evidence import ObservedRank, ObservedRun, Unmet, demand
from hvdcourse.thumbnails import recognised

SMALL_EPOCHS, KILLED_IN = 3, 2
SINGLE_BATCH, LARGER = 16, 16
# Points of a share: none up to the first number, all from the second one on.
THROUGHPUT, ACCURACY = (1.0, 2.0), (0.5, 0.9)

# The share of a part's points, in 0…1, and what was measured, in words.
Finding = tuple[float, str]
MET: Finding = (1.0, "")

training.WORDS.update(batch="trains on", step="updates", bytes="updates", answers="evaluates")


@dataclass(frozen=True)
class Gallery:
    """The images of a run: how many to train, thumbnails as ``all_views`` has them, and labels."""

    painters: tuple[str, ...]
    count: int
    train_views: np.ndarray | None
    test_views: np.ndarray
    test_labels: np.ndarray


@dataclass
class Evidence:
    """The judge's runs by name, what each one's gallery was, and why a run is not there."""

    runs: dict[str, ObservedRun] = field(default_factory=dict)
    galleries: dict[str, Gallery] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def run(self, name: str) -> ObservedRun:
        """Return a run. Raises Unmet where it did not end as it must: no evidence, no points."""
        if name not in self.runs:
            seen = self.failures.get(name, "it was not started").splitlines()
            raise Unmet(f"the run {name!r} ends as it must", seen)
        return self.runs[name]


def ended(evidence: Evidence) -> Finding:
    """The runs ended well, and trained: a program that does nothing ends well, too."""
    # How much is left after a kill is what another part looks at.
    for name, least in (("alone", SMALL_EPOCHS), ("resumed", 1), ("four", SMALL_EPOCHS)):
        steps = [len(rank.notes("step")) for rank in evidence.run(name).ranks]
        demand(
            f"in the run {name!r} every rank trains: one step in an epoch is the least",
            [mine >= least for mine in steps],
            [f"made {mine} steps" for mine in steps],
        )
    return MET


def shares(evidence: Evidence) -> Finding:
    for name, epochs in (
        ("alone", SMALL_EPOCHS),
        ("killed", KILLED_IN - 1),
        ("four", SMALL_EPOCHS),
    ):
        check_shares(evidence.run(name), evidence.galleries[name], epochs)
    return MET


def check_shares(run: ObservedRun, gallery: Gallery, epochs: int) -> None:
    """In each of the first epochs the ranks, together, train on each image once."""
    count = gallery.count
    wanted = f"in each epoch the {run.np} ranks, together, train on each of {count} images once"
    batches = [training.notes(rank, "batch") for rank in run.ranks]
    per_epoch = steps_an_epoch(run, count)
    seen = [f"trains on {mine[0]['size']} images in its first step" for mine in batches]
    for epoch in range(epochs):
        part = slice(epoch * per_epoch, (epoch + 1) * per_epoch)
        found = [one for mine in batches for batch in mine[part] for one in batch["images"]]
        times = Counter(recognised(found, gallery.train_views).tolist())
        if times.pop(-1, 0):
            raise Unmet(wanted, ["some images are not among those of --data; crops and shifts of "
                                 "images belong into the model, as layers"])  # fmt: skip
        if set(times.values()) != {1} or len(times) != count:
            more = sum(n > 1 for n in times.values())
            seen.append(f"epoch {epoch + 1}: {len(times)} images seen, {more} more than once")
            raise Unmet(wanted, seen)


def steps_an_epoch(run: ObservedRun, count: int) -> int:
    """Return the steps after which rank 0's share of an epoch is through; at least 1."""
    images = np.cumsum(sum_of_sizes(run))
    return int(np.searchsorted(images, count)) + 1


def sum_of_sizes(run: ObservedRun) -> np.ndarray:
    """Return how many images each step has on all ranks together, as far as all of them went."""
    sizes = [[one["size"] for one in training.notes(rank, "batch")] for rank in run.ranks]
    steps = min(map(len, sizes))
    return np.sum([mine[:steps] for mine in sizes], axis=0)


def gradients(evidence: Evidence) -> Finding:
    training.check_mean_gradient(evidence.run("four"))
    return MET


def start(evidence: Evidence) -> Finding:
    training.check_same_start(evidence.run("four"))
    training.check_same_end(evidence.run("four"))
    return MET


def evaluation(evidence: Evidence) -> Finding:
    """Each test image is evaluated by one rank, and the report is of all of them."""
    run, gallery = evidence.run("four"), evidence.galleries["four"]
    own = [set(last_answers(rank, gallery)) for rank in run.ranks]
    count = len(gallery.test_labels)
    once = len(set().union(*own)) == sum(map(len, own)) == count
    seen = [f"evaluates {len(mine)} images" for mine in own]
    demand(f"each of the {count} test images is evaluated by one rank", [once], seen)
    right = right_by_painter(run, gallery)
    reported = run.ranks[0].found("report")
    demand(
        "rank 0 reports for each painter how many of all test images are right, and of how many",
        [reported == {name: list(pair) for name, pair in right.items()}],
        [f"reports {reported}; it is {right}"],
    )
    return MET


def last_answers(rank: ObservedRank, gallery: Gallery) -> dict[int, int]:
    """Return the class that a rank's model gave last to each test image that it evaluated."""
    found = training.notes(rank, "answers")
    images = [one for note in found for one in note["images"]]
    classes = [one for note in found for one in note["classes"]]
    numbers = recognised(images, gallery.test_views[:1]).tolist()
    return {n: answer for n, answer in zip(numbers, classes, strict=True) if n >= 0}


def right_by_painter(run: ObservedRun, gallery: Gallery) -> dict[str, tuple[int, int]]:
    """Return how many test images of each painter the ranks told right, and of how many."""
    answers: dict[int, int] = {}
    for rank in run.ranks:
        answers.update(last_answers(rank, gallery))
    right, count = Counter(), Counter()
    for number, label in enumerate(gallery.test_labels.tolist()):
        count[label] += 1
        right[label] += answers.get(number) == label
    return {name: (right[n], count[n]) for n, name in enumerate(gallery.painters)}


def one_voice(evidence: Evidence) -> Finding:
    run, gallery = evidence.run("four"), evidence.galleries["four"]
    training.check_one_voice(run)
    lines = "\n".join(run.ranks[0].output)
    missing = [name for name in gallery.painters if lines.count(name) != 1]
    seen = [f"{lines.count(name)} lines name {name}" for name in missing[:3]]
    demand("the report names each painter once", [not missing], seen)
    return MET


def one_writer(evidence: Evidence) -> Finding:
    training.check_one_writer(evidence.run("killed"))
    return MET


def resumed(evidence: Evidence) -> Finding:
    """After the kill it goes on with the epoch that was cut off, and with the same weights."""
    before, after = evidence.run("killed"), evidence.run("resumed")
    count = evidence.galleries["resumed"].count
    left = sum_of_sizes(after).sum() / count
    most = SMALL_EPOCHS - KILLED_IN + 1
    demand(
        f"after a kill in epoch {KILLED_IN} of {SMALL_EPOCHS} no complete epoch is lost: at most "
        f"{most} are left to train",
        [0 < left <= most + 1e-6],
        [f"the ranks train {left:g} more epochs"],
    )
    saved = weights_before(before.ranks[0])
    far = [min(distance(weights_before(rank)[0], one) for one in saved[1:]) for rank in after.ranks]
    demand(
        "before its first step every rank of the resumed run has weights of the killed one",
        [one < SMALL for one in far],
        far_away(far, "the killed run's weights"),
    )
    return MET


def throughput(evidence: Evidence) -> Finding:
    own = images_per_second(evidence.run("large"), evidence.galleries["large"])
    base = images_per_second(evidence.run("baseline"), evidence.galleries["baseline"])
    words = f"{own:.0f} images/s, {own / base:.2f} times the untouched program's {base:.0f}"
    return part_of(own / base, THROUGHPUT, words)


def images_per_second(run: ObservedRun, gallery: Gallery) -> float:
    """Return how many images a second the ranks train on, without what they see more than once.

    The first epoch and evaluations do not count.
    """
    count, epochs = gallery.count, run.arguments["epochs"]
    batches = [training.notes(rank, "batch") for rank in run.ranks]
    steps = [np.array(training.notes(rank, "step")) for rank in run.ranks]
    seconds = []
    for mine, done in zip(batches, steps, strict=True):
        begun = [part[0]["time"] for part in np.array_split(mine, epochs)[1:]]
        ends = [part[-1] for part in np.array_split(done, epochs)[1:]]
        seconds.append(np.sum(np.array(ends) - begun))
    trained = min(sum(one["size"] for mine in batches for one in mine), epochs * count)
    return trained * (epochs - 1) / epochs / max(seconds)


def accuracy(evidence: Evidence) -> Finding:
    run, gallery = evidence.run("large"), evidence.galleries["large"]
    check_large_batch(run, gallery)
    right = right_by_painter(run, gallery)
    mean = float(np.mean([one / count for one, count in right.values()]))
    all_right = sum(one for one, _ in right.values()) / len(gallery.test_labels)
    words = f"mean of the painters {mean:.3f}; of all test images {all_right:.3f} are right"
    return part_of(mean, ACCURACY, words)


def check_large_batch(run: ObservedRun, gallery: Gallery) -> None:
    """The training has as few steps as a batch LARGER times as large has, and averages."""
    count, epochs = gallery.count, run.arguments["epochs"]
    most = epochs * -(-count // (LARGER * SINGLE_BATCH))
    steps = [len(training.notes(rank, "step")) for rank in run.ranks]
    demand(
        f"at {LARGER} times the batch there are at most {most} steps in {epochs} epochs",
        [mine <= most for mine in steps],
        [f"made {mine} steps" for mine in steps],
    )
    sent = [rank.allreduced_bytes() for rank in run.ranks]
    size = [max(training.notes(rank, "bytes")) for rank in run.ranks]
    demand(
        "the ranks average their gradients",
        # A third: they may be compressed to half of their bytes on the way.
        [mine > whole / 3 for mine, whole in zip(sent, size, strict=True)],
        [
            f"put {mine} of {whole} bytes into allreduces"
            for mine, whole in zip(sent, size, strict=True)
        ],
    )


def part_of(found: float, scale: tuple[float, float], words: str) -> Finding:
    """Return a measure's share of the points, in proportion between the scale's ends."""
    low, high = scale
    share = float(np.clip((found - low) / (high - low), 0, 1))
    return share, f"{words} (none of the points up to {low:g}, all from {high:g} on)"


@dataclass(frozen=True)
class Part:
    """A part of the score; ``judge`` returns its share and what was measured, or raises Unmet."""

    name: str
    title: str
    points: int
    judge: Callable[[Evidence], Finding]


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
