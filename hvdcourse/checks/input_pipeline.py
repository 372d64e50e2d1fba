"""What each step of ``input_pipeline.py`` must make true.

Judged by when each file was decoded, by what arrived at the device, and when.
"""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from hvdcourse.evidence import ObservedRun, Unmet
from hvdcourse.fed_epoch import FedEpoch

BATCH_SIZE = 16
EPOCHS = 5
PIXELS = 512
# One file after the other gives exactly 0 here, two at a time 0.5, on a busy machine, too.
LEAST_TOGETHER = 0.2
# Random orders of 113 samples stay below these by five standard deviations.
MOST_CORRELATION = 0.5
MOST_SHARED = 0.5
# A batch that is only made on request is never ready.
LEAST_READY = 0.3
# The cache, batches under way, and noise. One copy more for each epoch is too many.
MOST_COPIES = 3
# Without the cache it has been 1.5 to 1.7, with it 4 and more, on a busy machine, too.
LEAST_SPEEDUP = 2.0


def arguments() -> dict[str, Any]:
    """Return arguments for one check: a number of images that the batch size does not divide."""
    images = BATCH_SIZE * 7 + random.randrange(3, 14)
    return {"images": images, "pixels": PIXELS, "batch_size": BATCH_SIZE, "epochs": EPOCHS}


def demand(expected: str, met: bool, *seen: str) -> None:
    """Raise Unmet with what was seen unless the step is met."""
    if not met:
        raise Unmet(expected, list(seen))


def fed(run: ObservedRun, name: str) -> list[FedEpoch]:
    """Return the epochs that the device was fed. Raises Unmet where one has no images."""
    epochs = [FedEpoch(**epoch) for epoch in run.ranks[0].found(name)]
    wanted = run.arguments["epochs"] if name == "pipeline" else 1
    full = len(epochs) >= wanted and all(epoch.count for epoch in epochs)
    counts = [epoch.count for epoch in epochs]
    demand(f"images arrive in each of {wanted} epochs", full, f"{counts} images by epoch")
    return epochs


def check_together(run: ObservedRun) -> None:
    times = np.unique(
        np.concatenate([one.column("decoded") for one in fed(run, "pipeline")]), axis=0
    )
    latest_end = np.maximum.accumulate(times[:, 1])
    together = float(np.mean(times[1:, 0] < latest_end[:-1]))
    demand(
        "several files are read and decoded at the same time",
        together >= LEAST_TOGETHER,
        f"{together:.0%} of the files were begun before an earlier one was done",
    )


def happened(epochs: list[FedEpoch], name: str) -> set[tuple[str, float, float]]:
    """Return what a timed function did: each file, and when it began and ended with it."""
    return {
        (path, *times)
        for one in epochs
        for path, times in zip(one.column("path").tolist(), one.column(name).tolist(), strict=True)
    }


def check_cache(run: ObservedRun) -> None:
    plain, epochs = fed(run, "plain"), fed(run, "pipeline")
    decodings, shifts = happened(epochs, "decoded"), happened(epochs, "shifted")
    files = {path for path, _, _ in decodings}
    delivered = sum(one.count for one in epochs)
    copy = run.arguments["images"] * PIXELS**2
    growth = max(one.resident_bytes for one in epochs) - plain[-1].resident_bytes
    demand(
        f"in {len(epochs)} epochs each file is decoded once, an image is shifted anew each time it "
        f"is delivered, and memory grows by at most {MOST_COPIES} times the decoded images "
        f"({MOST_COPIES * copy / 1e6:.0f} MB)",
        len(decodings) == len(files)
        and len(shifts) == delivered
        and all(one.resident_bytes for one in (plain[-1], *epochs))
        and growth <= MOST_COPIES * copy,
        f"{len(files)} files were decoded {len(decodings)} times",
        f"{delivered} images were delivered, after {len(shifts)} shifts",
        f"memory grew by {growth / 1e6:.0f} MB",
    )
    demand_speed(run)


def demand_speed(run: ObservedRun) -> None:
    """Raise Unmet unless the images come faster than through the plain pipeline."""
    before = max(epoch.images_per_second for epoch in fed(run, "plain"))
    after = max(epoch.images_per_second for epoch in fed(run, "pipeline"))
    demand(
        f"the images come at least {LEAST_SPEEDUP:g} times as fast as through plain_pipeline",
        after >= LEAST_SPEEDUP * before,
        f"{after:.0f} images/s, {after / before:.1f} times as many as through plain_pipeline",
    )


def places(epochs: list[FedEpoch]) -> Iterator[dict[str, tuple[int, int]]]:
    """Yield for each epoch, by path, the place in the order and the batch of its first delivery."""
    for epoch in epochs:
        found, place = {}, 0
        for number, batch in enumerate(epoch.samples["path"]):
            for path in batch:
                found.setdefault(path, (place, number))
                place += 1
        yield found


def correlation(one: list[float], other: list[float]) -> float:
    """Return how alike two orders of the same samples are: 1 the same, -1 reversed, 0 random."""
    ranks = [np.argsort(np.argsort(order)) for order in (one, other)]
    return float(abs(np.corrcoef(ranks)[0, 1]))


def check_order(run: ObservedRun) -> None:
    orders = list(places(fed(run, "pipeline")))
    stored = [
        correlation(range(len(order)), [order[path][0] for path in sorted(order, key=by_class)])
        for order in orders
    ]
    alike, shared = [], []
    for one, other in combinations(orders, 2):
        both = sorted(one.keys() & other.keys())
        alike.append(
            correlation([one[path][0] for path in both], [other[path][0] for path in both])
        )
        shared.append(share_of_batchmates(one, other, both))
    demand(
        "every epoch has an order of its own, in which any image may come at any place",
        max(stored) < MOST_CORRELATION
        and max(alike) < MOST_CORRELATION
        and max(shared) < MOST_SHARED,
        f"correlation with the order of the files: {max(stored):.2f} (1: the same, 0: random)",
        f"correlation between two epochs: {max(alike):.2f}",
        f"images of one batch that are together in another epoch, too: {max(shared):.0%}",
    )


def by_class(path: str) -> tuple[str, ...]:
    return Path(path).parts[-2:]


def share_of_batchmates(
    one: dict[str, tuple[int, int]], other: dict[str, tuple[int, int]], paths: list[str]
) -> float:
    """Return the share of the pairs in a batch of one epoch that are so in the other epoch."""
    pairs = [
        other[first][1] == other[second][1]
        for first, second in combinations(paths, 2)
        if one[first][1] == one[second][1]
    ]
    return float(np.mean(pairs)) if pairs else 0.0


def content(epoch: FedEpoch) -> Counter:
    """Return how often each path came with each label and each sum of pixels."""
    sums = [value for result in epoch.results for value in result]
    columns = (epoch.column("path").tolist(), epoch.column("label").tolist(), sums)
    return Counter(zip(*columns, strict=True))


def check_delivery(run: ObservedRun) -> None:
    files = content(fed(run, "plain")[0])
    epochs = fed(run, "pipeline")
    seen, met = [], len(files) == run.arguments["images"]
    for number, epoch in enumerate(epochs, start=1):
        sizes = [len(batch) for batch in epoch.samples["path"]]
        came = content(epoch)
        right = came == files and all(size == BATCH_SIZE for size in sizes[:-1])
        met = met and right and sizes[-1] <= BATCH_SIZE
        missing, extra = (files - came).total(), (came - files).total()
        seen.append(
            f"epoch {number}: {missing} missing, {extra} twice or with a wrong label or image; "
            f"batches of {sorted(set(sizes), reverse=True)}"
        )
    demand(
        f"in every epoch each of the {len(files)} images arrives once, with its label, in batches "
        f"of {BATCH_SIZE} and one of {len(files) % BATCH_SIZE}",
        met,
        *seen,
    )


def ready_batches(epoch: FedEpoch) -> list[bool]:
    """Return for each batch but the first whether it was made before the step before it ended."""
    made = [max(ended for _, ended in batch) for batch in epoch.samples["shifted"]]
    return [later < end for later, end in zip(made[1:], epoch.ended[:-1], strict=True)]


def check_ahead(run: ObservedRun) -> None:
    epochs = fed(run, "pipeline")
    ready = float(np.mean([one for epoch in epochs for one in ready_batches(epoch)]))
    demand(
        f"the next batch is made while the device works (in at least {LEAST_READY:.0%} of the "
        "steps)",
        ready >= LEAST_READY,
        f"{ready:.0%} of the batches were ready when the step before them ended",
    )


STEPS = (
    (
        1,
        "Several files are decoded at the same time",
        "Dataset.map has an argument for the number of calls that run at once. "
        "tf.data.AUTOTUNE leaves the number to TensorFlow.",
        check_together,
    ),
    (
        2,
        "Each file is decoded once",
        "Dataset.cache() keeps in memory what comes out of the transformation before it. What is "
        "random must stand behind it.",
        check_cache,
    ),
    (
        3,
        "Every epoch has its own random order",
        "Dataset.shuffle(buffer_size) picks the next element at random from a buffer. What does "
        "the buffer have to hold so that the last file can come first? Does the order change "
        "from epoch to epoch, and would it if the shuffle stood before the cache?",
        check_order,
    ),
    (
        4,
        "Every image arrives once an epoch",
        "Dataset.batch drops a smaller last batch only if it is told to.",
        check_delivery,
    ),
    (
        5,
        "The next batch is ready in time",
        "Dataset.prefetch(count) makes elements ahead, on a thread of its own. It helps with the "
        "transformations that stand before it, so which place is best?",
        check_ahead,
    ),
)
