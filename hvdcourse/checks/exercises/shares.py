"""How samples must be shared out, in training and in evaluation, by what each rank noted."""

import functools
import itertools
import reprlib
from collections import Counter

import numpy as np

from hvdcourse.checks.evidence import ObservedRank, ObservedRun, Unmet, counted, demand, named_ranks
from hvdcourse.checks.exercises.training_notes import SMALL, demand_finite, notes
from hvdcourse.data.sets import load_digits
from hvdcourse.rank.fingerprints import identities

# 3 ranks share these as n + 1, n + 1 and n images, which are n / 5 full batches and an image more
# on two of them.
COUNTS, BATCH_SIZE = (77, 107, 137), 5
# What floating-point numbers of few images may be off, relatively.
ROUNDING = 1e-6


@functools.cache
def known_samples(kind: str, count: int | None = None) -> dict[float, int]:
    """Return the number of every digit image by its identity."""
    digits = load_digits()
    images = (digits.train_images if kind == "trained" else digits.test_images)[:count]
    return {identity: number for number, identity in enumerate(identities(images))}


def samples_of(rank: ObservedRank, kind: str, known: dict[float, int]) -> list[list[int]]:
    """Return the numbers of the samples of each batch. Raises Unmet for one that is not known.

    To evaluate images that it trains on is each rank's own affair.
    """
    others = set(known_samples("trained")) - known.keys() if kind == "evaluated" else set()
    batches = [[one for one in batch if one not in others] for batch in notes(rank, kind)]
    try:
        return [[known[identity] for identity in batch] for batch in batches]
    except KeyError:
        use, part = ("train", "training") if kind == "trained" else ("evaluate", "test")
        expected = f"the ranks {use} on the {part} images of --data, as they are"
        lines = [f"rank {rank.rank}: got an image that is not among them"]
        raise Unmet(expected, lines) from None


def check_shares(run: ObservedRun) -> None:
    """In each epoch the ranks together see each sample once."""
    count, epochs = run.arguments["images"], run.arguments["epochs"]
    known = known_samples("trained", count)
    batches = [samples_of(rank, "trained", known) for rank in run.ranks]
    steps = {len(of_rank) for of_rank in batches}
    lines = [
        f"{counted(len(of_rank) / epochs, 'step')} and "
        f"{counted(sum(map(len, of_rank)) / epochs, 'image')} an epoch"
        for of_rank in batches
    ]
    expected = (
        f"in each epoch {together(run.np)} on each of the {count} images once, "
        "in the same number of steps"
    )
    demand(expected, [len(steps) == 1 and not next(iter(steps)) % epochs], lines)
    per_epoch = next(iter(steps)) // epochs
    for epoch in range(epochs):
        part = slice(epoch * per_epoch, (epoch + 1) * per_epoch)
        shares = [Counter(itertools.chain.from_iterable(of_rank[part])) for of_rank in batches]
        times = sum(shares, Counter())
        if set(times.values()) != {1} or len(times) != count:
            more = sum(n > 1 for n in times.values())
            lines.append(
                f"epoch {epoch + 1}, images not seen: {count - len(times)}, seen more than once: "
                f"{more}{same_shares(shares)}"
            )
            raise Unmet(
                expected,
                [f"rank {rank}: {line}" for rank, line in enumerate(lines[:-1])] + lines[-1:],
            )
    begun = [rank.notes("epoch") for rank in run.ranks]
    demand(
        f"fit makes {epochs} epochs",
        [not of_rank or len(of_rank) == epochs for of_rank in begun],
        [
            f"fit started {len(of_rank)} epochs, and then its {per_epoch * epochs} batches were "
            "used up: its steps per epoch are not the number of this rank's batches"
            for of_rank in begun
        ],
    )
    check_fewer_steps(run, per_epoch)


def check_shuffled_shares(run: ObservedRun) -> None:
    """The ranks share out each epoch's images, in an order that is new in each epoch."""
    check_shares(run)
    batches = [notes(rank, "trained") for rank in run.ranks]
    steps = len(batches[0]) // run.arguments["epochs"]
    demand(
        "the images come in a different order in each epoch",
        [of_rank[:steps] != of_rank[-steps:] for of_rank in batches],
        ["in the last epoch they come as in the first" for _ in batches],
    )


def same_shares(shares: list[Counter]) -> str:
    """Say which ranks have the same images; "" where no two have."""
    same = [rank for rank, share in enumerate(shares) if shares.count(share) > 1]
    return f"; {named_ranks(same)} train on the same images" if same else ""


def together(ranks: int) -> str:
    """Say who trains."""
    return "the one rank trains" if ranks == 1 else f"the {ranks} ranks, together, train"


def check_fewer_steps(run: ObservedRun, steps: int) -> None:
    """An epoch has as many steps as batches of the wanted size, on all ranks, hold its images."""
    size, count = run.arguments["batch_size"], run.arguments["images"]
    fewest, most = count // (size * run.np), -(-count // (size * run.np))
    demand(
        f"with batches of {size} images on each rank an epoch has {most} steps"
        f"{f', or {fewest}' if fewest < most else ''}; a single process makes {-(-count // size)}",
        [fewest <= steps <= most] * run.np,
        [f"makes {counted(steps, 'step')}, of {count / (steps * run.np):.3g} images on average"]
        * run.np,
    )


def check_validation(run: ObservedRun, metrics: str, count: int | None = None) -> None:
    """The test images are shared out, and every rank reports the metrics of them all.

    It reports them under the names ``metrics`` + ``_accuracy`` and + ``_loss``. There are as many
    as ``count`` says; all without it.
    """
    known = known_samples("evaluated", count)
    shares = [
        {number for batch in samples_of(rank, "evaluated", known) for number in batch}
        for rank in run.ranks
    ]
    times = Counter(number for share in shares for number in share)
    whose = "" if count is None else "check's "
    demand(
        f"each of the {whose}{len(known)} test images is evaluated by one rank",
        [set(times.values()) == {1} and len(times) == len(known)],
        [
            f"evaluates {len(share)} images{same_as(rank, shares)}"
            for rank, share in enumerate(shares)
        ],
    )
    for rank in run.ranks:
        demand_finite(rank)
    # The loss first: accuracies of few images are alike by chance.
    for name, by_image in (("loss", "losses"), ("accuracy", "correct")):
        values = [notes(rank, "end")[0][by_image] for rank in run.ranks]
        by_share = [
            np.array([of_rank[n] for n in sorted(share)], float)
            for of_rank, share in zip(values, shares, strict=True)
        ]
        check_metric(run, f"{metrics}_{name}", name, by_share)


def same_as(rank: int, shares: list[set[int]]) -> str:
    """Say which other ranks have some of a rank's images; "" where none has."""
    others = [n for n, share in enumerate(shares) if n != rank and share & shares[rank]]
    if not others:
        return ""
    return f", some of which {named_ranks(others)} evaluate{'s' * (len(others) == 1)} as well"


def check_metric(run: ObservedRun, report: str, name: str, by_share: list[np.ndarray]) -> None:
    """The last value that every rank reports is the mean over the images of all shares."""
    expected = float(np.concatenate(by_share).mean())
    means = [float(share.mean()) for share in by_share]
    total = sum(float(share.sum()) for share in by_share)
    reported = [last_number(rank, report) for rank in run.ranks]

    # By chance the mean of the means may be as near as that, and still is something else.
    off = abs(float(np.mean(means)) - expected) / max(1, expected) / 2
    near = off if ROUNDING < off < SMALL else SMALL

    def same(value: float, other: float) -> bool:
        return abs(value - other) < near * max(1, abs(other))

    def in_words(value: float, own: float) -> str:
        mistakes = {
            "that of its own share": own,
            "the sum over all images": total,
            "the sum of the ranks' means": sum(means),
            "the mean of the ranks' means, which ignores that shares differ in length": float(
                np.mean(means)
            ),
        }
        known = (mistake for mistake, wrong in mistakes.items() if same(value, wrong))
        factor = f"{value / expected:.3g} times that" if expected else "too much"
        return "the right one" if same(value, expected) else next(known, factor)

    demand(
        f"every rank has the {name} of the whole test set, {expected:.4f}",
        [same(value, expected) for value in reported],
        [
            f"has a {name} of {value:.4f}, {in_words(value, own)}"
            for value, own in zip(reported, means, strict=True)
        ],
    )


def last_number(rank: ObservedRank, report: str) -> float:
    """Return the last number of what a rank reports, a number or a list of them."""
    value = rank.reported(report)
    try:
        return float(np.ravel(np.array(value, np.float64))[-1])
    except (TypeError, ValueError, IndexError):
        lines = [f"rank {rank.rank}: reported {reprlib.repr(value)}"]
        raise Unmet(f"every rank reports {report!r} as numbers", lines) from None
