"""What the judge measures in a run: steps of an epoch, answers by painter, images a second.

Notes are those of ``hvdcourse.rank.observe_challenge``.
"""

import numpy as np

from hvdcourse.challenge.evidence import Gallery
from hvdcourse.checks.evidence import ObservedRank, ObservedRun
from hvdcourse.checks.exercises.training_notes import notes
from hvdcourse.rank.thumbnails import recognized


def images_by_step(run: ObservedRun) -> np.ndarray:
    """Return how many images each step has on all ranks together, as far as all of them went."""
    sizes = [[batch["size"] for batch in notes(rank, "batch")] for rank in run.ranks]
    steps = min(map(len, sizes))
    return np.sum([of_rank[:steps] for of_rank in sizes], axis=0)


def steps_an_epoch(run: ObservedRun, count: int) -> int:
    """Return the steps after which the ranks' shares of ``count`` images are through; 1 or more."""
    return int(np.searchsorted(np.cumsum(images_by_step(run)), count)) + 1


def last_answers(rank: ObservedRank, gallery: Gallery) -> dict[int, int]:
    """Return the class that a rank's model gave last to each test image that it evaluated."""
    answers = notes(rank, "answers")
    images = [image for note in answers for image in note["images"]]
    classes = [answer for note in answers for answer in note["classes"]]
    numbers = recognized(images, gallery.test_views[:1]).tolist()
    return {n: answer for n, answer in zip(numbers, classes, strict=True) if n >= 0}


def confusion(run: ObservedRun, gallery: Gallery) -> np.ndarray:
    """Return how many test images of each painter (row) were given each painter's name (column)."""
    answers: dict[int, int] = {}
    for rank in run.ranks:
        answers.update(last_answers(rank, gallery))
    table = np.zeros((len(gallery.painters),) * 2, int)
    for number, answer in answers.items():
        table[gallery.test_labels[number], answer] += 1
    return table


def counts_by_painter(run: ObservedRun, gallery: Gallery) -> dict[str, list[int]]:
    """Return how many test images of each painter are right, exist, and were given the name."""
    table = confusion(run, gallery)
    # Images that nobody evaluated exist all the same.
    exist = np.bincount(gallery.test_labels, minlength=len(table))
    counts = np.stack([table.diagonal(), exist, table.sum(axis=0)], axis=1).tolist()
    return dict(zip(gallery.painters, counts, strict=True))


def images_per_second(run: ObservedRun, gallery: Gallery) -> float:
    """Return how many images a second the ranks train on, without what they see more than once.

    The median epoch counts, without the first one and without evaluations. It begins where what
    came before it ended: a script that fills a shuffle buffer waits before its first step.
    """
    epochs = run.arguments["epochs"]
    batches = [notes(rank, "batch") for rank in run.ranks]
    seconds = []  # of each rank, by epoch
    for rank, of_rank in zip(run.ranks, batches, strict=True):
        steps, answers = notes(rank, "step"), rank.notes("answers")
        done = np.sort([*steps, *(answer["time"] for answer in answers)])
        firsts = [epoch[0]["time"] for epoch in np.array_split(of_rank, epochs)[1:]]
        begins = done[np.searchsorted(done, firsts, side="right") - 1]
        seconds.append([epoch[-1] for epoch in np.array_split(steps, epochs)[1:]] - begins)
    trained = sum(batch["size"] for of_rank in batches for batch in of_rank)
    trained = min(trained, epochs * gallery.count)
    return float(trained / epochs / np.median(np.max(seconds, axis=0)))
