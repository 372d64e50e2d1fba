"""What distributed training must make true, judged by what each rank noted of it."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import ObservedRank, ObservedRun, Unmet, demand
from hvdcourse.checks.exercises.training_notes import (
    COMPRESSED,
    SMALL,
    distance,
    far_away,
    gradients,
    notes,
    weights_at_end,
    weights_before,
)
from hvdcourse.data.sets import load_digits
from hvdcourse.rank.fingerprints import identities


def check_place(run: ObservedRun) -> None:
    """Every rank knows its place, and sees one GPU: that of its local rank."""
    places = [notes(rank, "place")[0] for rank in run.ranks]
    demand(
        f"the ranks are 0 to {run.np - 1} of {run.np}, and each sees one GPU, with the number of "
        "its local rank (where there are no GPUs, the check pretends that there are)",
        [
            (place["rank"], place["size"]) == (rank, run.np) and place["gpus"] == [local_rank]
            for (rank, place), local_rank in zip(enumerate(places), run.local_ranks, strict=True)
        ],
        map(place_in_words, places),
    )


def place_in_words(place: dict[str, Any]) -> str:
    """Say which rank a process is, and which GPUs it sees."""
    if place["rank"] is None:
        return "Horovod was not initialised"
    numbers = ", ".join(map(str, place["gpus"]))
    gpus = f"{'GPU' if len(place['gpus']) == 1 else 'GPUs'} {numbers}" if numbers else "no GPU"
    return (
        f"rank {place['rank']} of {place['size']}, with local rank {place['local_rank']}, sees "
        f"{gpus}"
    )


def check_one_voice(run: ObservedRun) -> None:
    """Rank 0 prints, and nobody else."""
    printed = [rank.output for rank in run.ranks]
    demand(
        "rank 0 prints, and the other ranks print nothing",
        [bool(lines) == (rank == 0) for rank, lines in enumerate(printed)],
        [
            f"printed {len(lines)} lines" + (f": {lines[0]!r}…" if lines else "")
            for lines in printed
        ],
    )


def check_one_writer(run: ObservedRun, argument: str = "folder") -> None:
    """Rank 0 writes into its folder, which this argument names; the others' stay empty."""
    folders = [Path(run.arguments[argument].format(rank=rank.rank)) for rank in run.ranks]
    written = [
        sorted(path.name for path in folder.rglob("*") if path.is_file()) for folder in folders
    ]
    demand(
        "rank 0 writes the checkpoints and logs, and no other rank writes any",
        [bool(names) == (rank == 0) for rank, names in enumerate(written)],
        [f"wrote {len(names)} files" + (f": {names[0]}…" if names else "") for names in written],
    )


def check_mean_gradient(run: ObservedRun) -> None:
    """Every update is made with the mean of all ranks' own gradients."""
    own = [gradients(rank, "gradient") for rank in run.ranks]
    used = [gradients(rank, "update") for rank in run.ranks]
    counts = [(len(computed), len(applied)) for computed, applied in zip(own, used, strict=True)]
    demand(
        "all ranks make equally many updates, one for each gradient",
        [len({count for pair in counts for count in pair}) == 1],
        [f"{computed} gradients, {applied} updates" for computed, applied in counts],
    )
    mean = np.mean(own, axis=0)
    far = [distance(applied, mean) for applied in used]
    # Ranks with the same weights and the same samples have the same gradients, averaged or not.
    alike = all(distance(computed, own[0]) < COMPRESSED for computed in own[1:])
    averaged = [not alike or averages_gradients(rank) for rank in run.ranks]
    demand(
        "in every step all ranks use the mean of all ranks' gradients",
        [away < COMPRESSED and was for away, was in zip(far, averaged, strict=True)],
        [
            f"its updates use gradients {100 * away:.0f} % away from the mean"
            if was
            else "its gradients were never averaged"
            for away, was in zip(far, averaged, strict=True)
        ],
    )
    if started_alike(run):
        check_same_end(run)


def averages_gradients(rank: ObservedRank) -> bool:
    """Whether the rank has put a gradient's worth of bytes, or half of it, into allreduces."""
    return rank.allreduced_bytes() > notes(rank, "place")[0]["bytes"] / 3


def started_alike(run: ObservedRun) -> bool:
    """Whether all ranks had the same weights before the first or the second update."""
    before = [weights_before(rank) for rank in run.ranks]
    steps = min(2, *(len(weights) for weights in before))
    return any(
        all(distance(weights[step], before[0][step]) < SMALL for weights in before)
        for step in range(steps)
    )


def check_same_end(run: ObservedRun) -> None:
    """All ranks have the same weights at the end."""
    ends = [weights_at_end(rank) for rank in run.ranks]
    far = [distance(weights, ends[0]) for weights in ends]
    demand(
        "all ranks have the same weights at the end",
        [away < COMPRESSED for away in far],
        far_away(far, "rank 0's weights"),
    )


def check_same_start(run: ObservedRun) -> None:
    """All ranks have rank 0's weights, at the latest after the first step."""
    before = [weights_before(rank) for rank in run.ranks]
    steps = range(min(2, *(len(weights) for weights in before)))
    far = [min(distance(weights[s], before[0][s]) for s in steps) for weights in before]
    demand(
        "every rank goes on with rank 0's weights, at the latest after the first step",
        [started_alike(run)] * run.np,
        far_away(far, "rank 0's weights"),
    )


def known_samples(kind: str, count: int | None = None) -> dict[float, int]:
    """Return the number of every digit image by its identity."""
    digits = load_digits()
    images = (digits.train_images if kind == "trained" else digits.test_images)[:count]
    return {identity: number for number, identity in enumerate(identities(images))}


def samples_of(rank: ObservedRank, kind: str, known: dict[float, int]) -> list[list[int]]:
    """Return the numbers of the samples of each batch. Raises Unmet for one that is not known."""
    try:
        return [[known[identity] for identity in batch] for batch in notes(rank, kind)]
    except KeyError:
        expected = "the ranks train on the images of --data, as they are"
        lines = [f"rank {rank.rank}: got an image that is not among them"]
        raise Unmet(expected, lines) from None


def check_shares(run: ObservedRun) -> None:
    """In each epoch the ranks together see each sample once."""
    count, epochs = run.arguments["images"], run.arguments["epochs"]
    known = known_samples("trained", count)
    batches = [samples_of(rank, "trained", known) for rank in run.ranks]
    steps = {len(of_rank) for of_rank in batches}
    lines = [
        f"{len(of_rank) / epochs:g} steps and {sum(map(len, of_rank)) / epochs:g} images an epoch"
        for of_rank in batches
    ]
    expected = (
        f"in each epoch the {run.np} ranks, together, train on each of the {count} images once"
    )
    demand(expected, [len(steps) == 1 and not next(iter(steps)) % epochs], lines)
    per_epoch = next(iter(steps)) // epochs
    for epoch in range(epochs):
        part = slice(epoch * per_epoch, (epoch + 1) * per_epoch)
        times = Counter(
            number for of_rank in batches for batch in of_rank[part] for number in batch
        )
        if set(times.values()) != {1} or len(times) != count:
            more = sum(n > 1 for n in times.values())
            lines += [f"epoch {epoch + 1}: {len(times)} images were seen, {more} more than once"]
            raise Unmet(expected, lines)
    check_fewer_steps(run, per_epoch)


def check_fewer_steps(run: ObservedRun, steps: int) -> None:
    """An epoch has as many steps as batches of the wanted size, on all ranks, hold its images."""
    size, count = run.arguments["batch_size"], run.arguments["images"]
    fewest, most = count // (size * run.np), -(-count // (size * run.np))
    demand(
        f"with batches of {size} images on each rank an epoch has {most} steps"
        f"{f', or {fewest}' if fewest < most else ''}; a single process makes {-(-count // size)}",
        [fewest <= steps <= most] * run.np,
        [f"makes {steps} steps, of {count / (steps * run.np):.3g} images on average"] * run.np,
    )


def check_validation(run: ObservedRun, metrics: str) -> None:
    """The test images are shared out, and every rank reports the metrics of them all.

    It reports them under the names ``metrics`` + ``_accuracy`` and + ``_loss``.
    """
    known = known_samples("evaluated")
    shares = [
        {number for batch in samples_of(rank, "evaluated", known) for number in batch}
        for rank in run.ranks
    ]
    times = Counter(number for share in shares for number in share)
    demand(
        f"each of the {len(known)} test images is evaluated by one rank",
        [set(times.values()) == {1} and len(times) == len(known)],
        [f"evaluates {len(share)} images" for share in shares],
    )
    for name, by_image in (("accuracy", "correct"), ("loss", "losses")):
        values = [notes(rank, "end")[0][by_image] for rank in run.ranks]
        mean = np.mean(
            [of_rank[n] for of_rank, share in zip(values, shares, strict=True) for n in share]
        )
        check_metric(run, f"{metrics}_{name}", name, float(mean))


def check_metric(run: ObservedRun, report: str, name: str, expected: float) -> None:
    """The last value that every rank reports is the expected one."""
    reported = [float(np.ravel(rank.reported(report))[-1]) for rank in run.ranks]
    demand(
        f"every rank has the {name} of the whole test set, {expected:.4f}",
        [abs(value - expected) < SMALL * max(1, expected) for value in reported],
        [f"has {value:.4f}" for value in reported],
    )


def check_averaged_loss(run: ObservedRun) -> None:
    """For each epoch every rank has the mean of the ranks' losses, weighted by images or not."""
    own = np.array([rank.all_reported("own_loss") for rank in run.ranks], np.float64)
    counts = [sum(map(len, notes(rank, "trained"))) for rank in run.ranks]
    means = [own.mean(axis=0), np.average(own, axis=0, weights=counts)]
    reported = [np.array(losses, np.float64) for losses in run.reported("losses")]
    demand(
        f"every rank has the mean of all ranks' losses: {in_words(means[0])}",
        [
            any(losses.shape == mean.shape and np.allclose(losses, mean, SMALL) for mean in means)
            for losses in reported
        ],
        [
            f"has {in_words(losses)}; its own are {in_words(of_rank)}"
            for losses, of_rank in zip(reported, own, strict=True)
        ],
    )


def in_words(losses: np.ndarray) -> str:
    """Return losses as text."""
    return ", ".join(f"{loss:.4f}" for loss in np.ravel(losses)) or "none"
