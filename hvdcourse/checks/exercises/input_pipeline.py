"""What each step of ``input_pipeline.py`` must make true.

Judged by when each file was decoded, by what arrived at the device, and when.
"""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import ObservedRun, demand_of_run, percent
from hvdcourse.checks.exercise import ALONE, Exercise, Step, Trial
from hvdcourse.training.fed_epoch import FedEpoch

# Another one than the script has without an argument.
BATCH_SIZE = 20
EPOCHS = 5
PIXELS = 512
# One file after the other gives exactly 0 here, two at a time 0.5, on a busy machine, too.
LEAST_TOGETHER = 0.2
# Random orders of 163 samples stay below these by five standard deviations.
MOST_CORRELATION = 0.5
MOST_SHARED = 0.5
# From here on two orders, or the images of two batches, are the same.
SAME = 0.99
# The mean over the pairs of five random orders is 0, with a standard deviation of 0.024. Where all
# five stir the same order with a buffer for 64 it is 0.33.
MOST_MEAN_CORRELATION = 0.15
# One in 1089 is shifted as in the epoch before.
MOST_ALIKE = 0.1
# A buffer that holds a part of the files lets none come earlier than by its size. With room for
# all, the chance that none of five epochs brings one forward by so much is below 1e-7.
LEAST_AHEAD = 0.75
# Of batches that are only made on request none is ready; on a machine with other work the next is
# late at times, though it is made ahead.
LEAST_READY = 0.1
# The cache, batches under way, and noise. One copy more for each epoch is too many.
MOST_COPIES = 3
# Without the cache it has been 1.5 to 1.7, with it 4 and more, on a busy machine, too.
LEAST_SPEEDUP = 2.0


def arguments() -> dict[str, Any]:
    """Return arguments for one check.

    The batch size does not divide the number of images, and a buffer for the 121 that the script
    has without an argument is one for less than ``LEAST_AHEAD`` of them.
    """
    images = BATCH_SIZE * 8 + random.randrange(3, 14)
    return {"images": images, "pixels": PIXELS, "batch_size": BATCH_SIZE, "epochs": EPOCHS}


def fed(run: ObservedRun, name: str) -> list[FedEpoch]:
    """Return the epochs that the device was fed. Raises Unmet where one has no images."""
    epochs = [FedEpoch(**epoch) for epoch in run.ranks[0].reported(name)]
    least = run.arguments["epochs"] if name == "pipeline" else 1
    counts = [epoch.count for epoch in epochs]
    demand_of_run(
        f"images arrive in each of {least} epochs",
        len(epochs) >= least and all(counts),
        f"{counts} images by epoch",
    )
    for function, times in (("decode", "decoded"), ("shift", "shifted")):
        columns = [epoch.column(times) for epoch in epochs]
        demand_of_run(
            f"`{function}` is given one image at a time; batches are made after it",
            all(column.ndim == 2 or not column.size for column in columns),
            f"`{function}` was given whole batches",
        )
    return epochs


def check_together(run: ObservedRun) -> None:
    times = np.unique(
        np.concatenate([epoch.column("decoded") for epoch in fed(run, "pipeline")]), axis=0
    )
    latest_end = np.maximum.accumulate(times[:, 1])
    together = float(np.mean(times[1:, 0] < latest_end[:-1]))
    demand_of_run(
        "several files are read and decoded at the same time",
        together >= LEAST_TOGETHER,
        f"{together:.0%} of the files were started before an earlier one was finished",
    )


def calls_of(epochs: list[FedEpoch], name: str) -> set[tuple[str, float, float]]:
    """Return what a timed function did: each file, and when it began and ended with it."""
    return {
        (path, began, ended)
        for epoch in epochs
        for path, (began, ended) in zip(epoch.column("path"), epoch.column(name), strict=True)
    }


def check_cache(run: ObservedRun) -> None:
    plain, epochs = fed(run, "plain"), fed(run, "pipeline")
    decodings, shifts = calls_of(epochs, "decoded"), calls_of(epochs, "shifted")
    files = {path for path, _, _ in decodings}
    delivered = sum(epoch.count for epoch in epochs)
    copy = run.arguments["images"] * PIXELS**2
    growth = max(epoch.resident_bytes for epoch in epochs) - plain[-1].resident_bytes
    written = epochs[-1].written_bytes - plain[-1].written_bytes
    demand_of_run(
        "the decoded images are kept in memory, and not in files",
        written < copy / 2,
        f"{written / 1e6:.0f} MB were written into files; the images have {copy / 1e6:.0f} MB",
    )
    demand_of_run(
        f"in {len(epochs)} epochs each file is decoded once, an image is shifted anew each time it "
        f"is delivered, and memory grows by at most {MOST_COPIES} times the decoded images "
        f"({MOST_COPIES * copy / 1e6:.0f} MB)",
        len(decodings) == len(files)
        and len(shifts) == delivered
        and all(epoch.resident_bytes for epoch in (plain[-1], *epochs))
        and growth <= MOST_COPIES * copy,
        f"{len(files)} files were decoded {len(decodings)} times",
        f"{delivered} images were delivered, after {len(shifts)} shifts",
        f"memory grew by {growth / 1e6:.0f} MB",
    )
    demand_new_shifts(epochs)
    demand_speed(run)


def demand_new_shifts(epochs: list[FedEpoch]) -> None:
    """Raise Unmet where an epoch shows the same pictures as the one before."""
    pictures = [picture_of_each(epoch) for epoch in epochs]
    alike = max(
        np.mean([later.get(path) == picture for path, picture in earlier.items()])
        for earlier, later in pairwise(pictures)
    )
    demand_of_run(
        "an image is shifted another way in each epoch",
        bool(alike < MOST_ALIKE),
        f"{alike:.0%} of the images were shifted just as in the epoch before",
    )


def picture_of_each(epoch: FedEpoch) -> dict[str, int]:
    """Return by path a number that tells the image from itself in another place."""
    numbers = [number for batch in epoch.pictures for number in batch]
    return dict(zip(epoch.column("path"), numbers, strict=True))


def demand_speed(run: ObservedRun) -> None:
    """Raise Unmet unless the images come faster than through the plain pipeline."""
    before = max(epoch.images_per_second for epoch in fed(run, "plain"))
    after = max(epoch.images_per_second for epoch in fed(run, "pipeline"))
    demand_of_run(
        f"the images come at least {LEAST_SPEEDUP:g} times as fast as through plain_pipeline",
        after >= LEAST_SPEEDUP * before,
        f"{after:.0f} images/s, {after / before:.1f} times as many as through plain_pipeline",
    )


# By path: the position in the epoch's order, and the number of the batch, of a first delivery.
Deliveries = dict[str, tuple[int, int]]


def deliveries(epoch: FedEpoch) -> Deliveries:
    """Return where in the epoch each file came first."""
    first: Deliveries = {}
    position = 0
    for batch, paths in enumerate(epoch.samples["path"]):
        for path in paths:
            first.setdefault(path, (position, batch))
            position += 1
    return first


def correlation(order: Sequence[float], other: Sequence[float]) -> float:
    """Return how alike two orders of the same samples are: 1 the same, -1 reversed, 0 random."""
    ranks = [np.argsort(np.argsort(positions)) for positions in (order, other)]
    return float(np.asarray(np.corrcoef(ranks))[0, 1])


def check_order(run: ObservedRun) -> None:
    epochs = [deliveries(epoch) for epoch in fed(run, "pipeline")]
    stored = [
        correlation(range(len(epoch)), [epoch[path][0] for path in sorted(epoch, key=by_class)])
        for epoch in epochs
    ]
    alike, shared = [], []
    for epoch, other in combinations(epochs, 2):
        paths = sorted(epoch.keys() & other.keys())
        alike.append(
            correlation([epoch[path][0] for path in paths], [other[path][0] for path in paths])
        )
        shared.append(share_of_batchmates(epoch, other, paths))
    classes = [np.resize(epoch.column("label"), len(epochs[0])) for epoch in fed(run, "pipeline")]
    same_class = max(np.mean(one == other) for one, other in combinations(classes, 2))
    ahead = max(
        place - epoch[path][0]
        for epoch in epochs
        for place, path in enumerate(sorted(epoch, key=by_class))
    )
    # Only where images are shuffled anew do their places tell how many the buffer holds.
    buffer = [
        f"no image came more than {ahead} places early, of {len(epochs[0])}: that is how many the "
        "shuffle's buffer seems to hold"
    ] * (max(alike) < SAME > max(shared))
    demand_of_run(
        "every epoch has an order of its own, in which any image may come at any place",
        ahead >= LEAST_AHEAD * len(epochs[0])
        and max(map(abs, stored)) < MOST_CORRELATION
        and max(map(abs, alike)) < MOST_CORRELATION
        and float(np.mean(alike)) < MOST_MEAN_CORRELATION
        and max(shared) < MOST_SHARED
        and same_class < MOST_SHARED,
        "correlation with the order of the files: "
        f"{max(stored, key=abs):.2f} (1: the same, 0: random)",
        f"correlation between two epochs: {max(alike, key=abs):.2f}, and {np.mean(alike):.2f} on "
        "average over all pairs",
        f"images of one batch that share a batch in another epoch as well: {max(shared):.0%}",
        f"places that have an image of the same class in another epoch: {same_class:.0%}",
        *buffer,
    )


def by_class(path: str) -> tuple[str, ...]:
    return Path(path).parts[-2:]


def share_of_batchmates(epoch: Deliveries, other: Deliveries, paths: list[str]) -> float:
    """Return the share of the pairs in a batch of one epoch that are so in the other epoch."""
    pairs = [
        other[first][1] == other[second][1]
        for first, second in combinations(paths, 2)
        if epoch[first][1] == epoch[second][1]
    ]
    return float(np.mean(pairs)) if pairs else 0.0


def content(epoch: FedEpoch) -> Counter:
    """Return how often each path came with each label and each sum of pixels."""
    sums = [value for result in epoch.results for value in result]
    columns = (epoch.column("path").tolist(), epoch.column("label").tolist(), sums)
    return Counter(zip(*columns, strict=True))


def check_delivery(run: ObservedRun) -> None:
    files = content(fed(run, "plain")[0])
    met = len(files) == run.arguments["images"]
    said: dict[str, list[int]] = {}
    for number, epoch in enumerate(fed(run, "pipeline"), start=1):
        sizes = [len(batch) for batch in epoch.samples["path"]]
        arrived = content(epoch)
        full = all(size == BATCH_SIZE for size in sizes[:-1]) and sizes[-1] <= BATCH_SIZE
        met = met and arrived == files and full
        missing, extra = (files - arrived).total(), (arrived - files).total()
        early = ", the smaller one not at the end" * (min(sizes) < BATCH_SIZE == sizes[-1])
        arrived_in_words = (
            f"{missing} missing, {extra} twice or with a wrong label or image; "
            f"batches of {sorted(set(sizes), reverse=True)}{early}"
        )
        said.setdefault(arrived_in_words, []).append(number)
    demand_of_run(
        f"in every epoch each of the {len(files)} images arrives once, with its label, in batches "
        f"of {BATCH_SIZE} and, at the end, one of {len(files) % BATCH_SIZE}",
        met,
        *(f"in epoch {', '.join(map(str, epochs))}: {words}" for words, epochs in said.items()),
    )


def batches_ahead(epoch: FedEpoch) -> list[tuple[bool, bool]]:
    """Return for each whole batch but the first whether it was begun, and made, ahead.

    That is, before the step on the batch before it ended. The last batch may have so few images
    that threads shift all of them at a time.
    """
    shifted = epoch.samples["shifted"]
    whole = max(len(batch) for batch in shifted)
    return [
        (min(begin for begin, _ in batch) < ended, max(end for _, end in batch) < ended)
        for batch, ended in zip(shifted[1:], epoch.ended[:-1], strict=True)
        if len(batch) == whole
    ]


def check_ahead(run: ObservedRun) -> None:
    epochs = fed(run, "pipeline")
    batches = [batch for epoch in epochs for batch in batches_ahead(epoch)]
    begun, ready = np.mean(batches, axis=0).tolist() if batches else (0.0, 0.0)
    seen = f"{percent(ready)} of the batches were ready when the step before them ended"
    if begun >= LEAST_READY:
        seen += f", though {percent(begun)} were begun: the pipeline works ahead, and takes longer"
    demand_of_run(
        f"the next batch is ready when the device has ended its step (in at least "
        f"{percent(LEAST_READY)} of the steps)",
        ready >= LEAST_READY,
        seen,
    )


STEPS = (
    Step(number=1, title="Several files are decoded at the same time", check=check_together),
    Step(number=2, title="Every epoch has its own random order", check=check_order),
    Step(number=3, title="Each file is decoded once", check=check_cache),
    Step(number=4, title="The next batch is ready in time", check=check_ahead),
    Step(number=5, title="Every image arrives once an epoch", check=check_delivery),
)

EXERCISE = Exercise(
    name="input_pipeline",
    notebook="02_single_gpu_baseline",
    trials=lambda _: [Trial(hosts=ALONE, arguments=arguments())],
    steps=STEPS,
    # With one heap for all threads, what is no longer used can go back to the system.
    environment={"MALLOC_ARENA_MAX": "1"},
)
