"""Every number of images that a check may draw shows each wrong way to share them out."""

from typing import NamedTuple

import numpy as np
import pytest
from judging import observed, told

from hvdcourse.checks.exercises import input_pipeline, mpi_concepts, shares
from hvdcourse.checks.manifest import find_exercise
from hvdcourse.data.sets import load_digits
from hvdcourse.data.shards import batches, shard

DRAWS = 300


class Place(NamedTuple):
    """Where a rank is, and how many images are to be shared out."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    count: int


def places(hosts: tuple[int, ...], count: int) -> list[Place]:
    local = [(local_rank, ranks) for ranks in hosts for local_rank in range(ranks)]
    return [Place(rank, len(local), *of_host, count) for rank, of_host in enumerate(local)]


def in_blocks(at: Place, length: int, end: int | None = None) -> np.ndarray:
    """Return a share of so many images, or one that ends elsewhere."""
    return np.arange(at.count)[at.rank * length : (at.rank + 1) * length if end is None else end]


def last_takes_the_rest(at: Place) -> np.ndarray:
    return in_blocks(at, at.count // at.size, at.count if at.rank == at.size - 1 else None)


SHARES = {
    "right": lambda at: shard(at.count, at.rank, at.size),
    "all of them": lambda at: np.arange(at.count),
    "by the local rank": lambda at: shard(at.count, at.local_rank, at.size),
    "by the local size": lambda at: np.arange(at.rank, at.count, at.local_size),
    "by both": lambda at: np.arange(at.local_rank, at.count, at.local_size),
    "2 for the size": lambda at: np.arange(at.rank % 2, at.count, 2),
    "3 for the size": lambda at: np.arange(at.rank % 3, at.count, 3),
    "what is left over is dropped": lambda at: in_blocks(at, at.count // at.size),
    "the last rank gets what is left over": last_takes_the_rest,
    "rounded up, and the last rank gets less": lambda at: in_blocks(at, -(-at.count // at.size)),
}


def cut(share: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Return batches that are full, but for the last one."""
    return [share[start : start + batch_size] for start in range(0, len(share), batch_size)]


BATCHES = {
    "right": lambda at, size: batches(at.count, at.rank, at.size, size),
    "full batches of a right share": lambda at, size: cut(SHARES["right"](at), size),
    "full batches alone": lambda at, size: [
        batch for batch in cut(SHARES["right"](at), size) if len(batch) == size
    ],
    "the last image is left out": lambda at, size: batches(at.count - 1, at.rank, at.size, size),
    "single images": lambda at, size: batches(at.count, at.rank, at.size, 1),
}
BATCHES |= {
    name: lambda at, size, share=share: cut(share(at), size)
    for name, share in SHARES.items()
    if name != "right"
}


def drawn(name, tmp_path):
    """Return what many checks draw of an exercise: of each run its hosts and arguments."""
    most = len(load_digits().train_images)
    found = {}
    for _ in range(DRAWS):
        trials = list(find_exercise(name).trials(tmp_path))
        runs = [(trial.hosts, min(trial.arguments["images"], most)) for trial in trials]
        found[tuple(runs)] = [
            (hosts, {**trial.arguments, "images": count})
            for (hosts, count), trial in zip(runs, trials, strict=True)
        ]
    return found


def reports_of(share, hosts, arguments):
    """Return the run whose ranks report these shares."""
    shared = map(share, places(hosts, arguments["images"]))
    evidence = [[{"report": "rows", "value": rows}] for rows in shared]
    return observed(*evidence, hosts=hosts, **arguments)


@pytest.mark.parametrize("name", SHARES)
def test_each_wrong_way_to_share_out_images_shows(name, tmp_path):
    for numbers, runs in drawn("mpi_concepts", tmp_path).items():
        shared = [reports_of(SHARES[name], *run) for run in runs]
        failed = any(told(mpi_concepts.check_share, run) for run in shared)
        assert failed == (name != "right"), numbers


def training_of(make_batches, hosts, arguments):
    """Return the run whose ranks train on these batches in every epoch."""
    known = list(shares.known_samples("trained", arguments["images"]))
    evidence = []
    for place in places(hosts, arguments["images"]):
        made = make_batches(place, arguments["batch_size"])
        values = [[known[row] for row in batch] for batch in made if len(batch)]
        notes = [{"note": "trained", "value": value} for value in values]
        evidence.append(notes * arguments["epochs"])
    return observed(*evidence, hosts=hosts, **arguments)


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("exercise", ["custom_loop", "svhn", "fashion_mnist", "lab_one_image_more"])
def test_each_wrong_way_to_share_out_an_epoch_shows(exercise, name, tmp_path):
    for numbers, runs in drawn(exercise, tmp_path).items():
        trained = [training_of(BATCHES[name], *run) for run in runs]
        failed = any(told(shares.check_shares, run) for run in trained)
        assert failed == (name != "right"), numbers


def test_each_number_of_images_leaves_the_pipeline_a_smaller_batch_and_a_small_buffer():
    for _ in range(DRAWS):
        images = input_pipeline.arguments()["images"]
        assert images % input_pipeline.BATCH_SIZE
        # What shuffle(121) holds is too little of them.
        assert input_pipeline.LEAST_AHEAD * images > 121
