"""What distributed training must make true, judged by the notes of ``observe_training``."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hvdcourse.data import load_digits
from hvdcourse.evidence import ObservedRank, ObservedRun, Unmet, demand
from hvdcourse.fingerprints import identities

# Of float32 sums in another order, and of gradients that were compressed on their way.
SMALL, COMPRESSED = 1e-4, 1e-2


def notes(rank: ObservedRank, name: str) -> list[Any]:
    """Return a rank's notes under a name. Raises Unmet where there is none.

    What a model is called with before the first update is no evaluation: it may only build it.
    """
    found = rank.notes(name, since="update" if name == "evaluated" else None)
    if not found:
        wanted = "every rank trains, evaluates and ends with a model"
        raise Unmet(wanted, [f"rank {rank.rank}: nothing was seen of what it {WORDS[name]}"])
    return found


WORDS = {
    "place": "updates",
    "trained": "trains on",
    "evaluated": "evaluates",
    "gradient": "computes as gradients",
    "update": "updates",
    "signs": "updates",
    "end": "has learned",
}


def weights_before(rank: ObservedRank) -> np.ndarray:
    """Return the weights' fingerprints before each update: (updates, variables, numbers)."""
    return np.array([update["weights"] for update in notes(rank, "update")])


def weights_at_end(rank: ObservedRank) -> np.ndarray:
    """Return the fingerprints of the weights at the end: (variables, numbers)."""
    return np.array(notes(rank, "end")[0]["weights"])


def gradients(rank: ObservedRank, name: str) -> np.ndarray:
    """Return a rank's own gradients (``gradient``) or those it updated with (``update``).

    They are fingerprints, of shape (updates, variables, numbers).
    """
    found = notes(rank, name)
    return np.array(found if name == "gradient" else [update["gradient"] for update in found])


def rates(rank: ObservedRank) -> np.ndarray:
    """Return the learning rate of each update, of shape (updates,)."""
    return np.array([update["rate"] for update in notes(rank, "update")], np.float64)


def distance(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return how far fingerprints are apart, relative to the larger ones; inf if shapes differ."""
    if found.shape != wanted.shape:
        return float("inf")
    projections = np.s_[..., :-1]
    length = np.linalg.norm(wanted[projections])
    return float(np.linalg.norm((found - wanted)[projections]) / max(length, 1e-30))


def far_away(distances: Sequence[float], from_what: str) -> list[str]:
    """Say of each rank how far its weights are from others."""
    return [
        f"has {from_what}" if one < SMALL else f"is {100 * one:.2g} % away from {from_what}"
        for one in distances
    ]


def check_place(run: ObservedRun) -> None:
    """Every rank knows its place, and sees one GPU: that of its local rank."""
    places = [notes(rank, "place")[0] for rank in run.ranks]
    met = [
        (place["rank"], place["size"]) == (r, run.np) and place["gpus"] == [place["local_rank"]]
        for r, place in enumerate(places)
    ]
    seen = [
        "Horovod was not initialised" if place["rank"] is None else
        f"rank {place['rank']} of {place['size']}, with local rank {place['local_rank']}, sees "
        f"{gpus_in_words(place['gpus'])}"
        for place in places
    ]  # fmt: skip
    demand(
        f"the ranks are 0 to {run.np - 1} of {run.np}, and each sees one GPU, with the number of "
        "its local rank (which the check lets differ from the rank, as on several machines; where "
        "there are no GPUs, it pretends that there are)",
        met,
        seen,
    )


def gpus_in_words(numbers: list[int]) -> str:
    """Say which GPUs these are."""
    if not numbers:
        return "no GPU"
    return ("GPU " if len(numbers) == 1 else "GPUs ") + ", ".join(str(one) for one in numbers)


def check_one_voice(run: ObservedRun) -> None:
    """Rank 0 prints, and nobody else."""
    lines = [rank.output for rank in run.ranks]
    met = [bool(mine) == (rank == 0) for rank, mine in enumerate(lines)]
    seen = [f"printed {len(mine)} lines" + (f": {mine[0]!r}…" if mine else "") for mine in lines]
    demand("rank 0 prints, and the other ranks print nothing", met, seen)


def check_one_writer(run: ObservedRun, argument: str = "folder") -> None:
    """Rank 0 writes into its folder, which this argument names; the others' stay empty."""
    folders = [Path(run.arguments[argument].format(rank=rank.rank)) for rank in run.ranks]
    files = [sorted(one.name for one in f.rglob("*") if one.is_file()) for f in folders]
    met = [bool(mine) == (rank == 0) for rank, mine in enumerate(files)]
    seen = [f"wrote {len(mine)} files" + (f": {mine[0]}…" if mine else "") for mine in files]
    demand("rank 0 writes the checkpoints and logs, and no other rank writes any", met, seen)


def check_mean_gradient(run: ObservedRun) -> None:
    """Every update is made with the mean of all ranks' own gradients."""
    own = [gradients(rank, "gradient") for rank in run.ranks]
    used = [gradients(rank, "update") for rank in run.ranks]
    counts = [len(mine) for mine in (*own, *used)]
    if len(set(counts)) > 1:
        seen = [f"{len(o)} gradients, {len(u)} updates" for o, u in zip(own, used, strict=True)]
        demand("all ranks make equally many updates, one for each gradient", [False], seen)
    mean = np.mean(own, axis=0)
    far = [distance(mine, mean) for mine in used]
    # Ranks with the same weights and the same samples have the same gradients, averaged or not.
    alike = all(distance(mine, own[0]) < COMPRESSED for mine in own[1:])
    averaged = [not alike or averages_gradients(rank) for rank in run.ranks]
    met = [f < COMPRESSED and was for f, was in zip(far, averaged, strict=True)]
    seen = [
        f"its updates use gradients {100 * f:.0f} % away from the mean"
        if was
        else "its gradients were never averaged"
        for f, was in zip(far, averaged, strict=True)
    ]
    demand("in every step all ranks use the mean of all ranks' gradients", met, seen)
    if started_alike(run):
        check_same_end(run)


def averages_gradients(rank: ObservedRank) -> bool:
    """Whether the rank has put a gradient's worth of bytes, or half of it, into allreduces."""
    return rank.allreduced_bytes() > notes(rank, "place")[0]["bytes"] / 3


def started_alike(run: ObservedRun) -> bool:
    """Whether all ranks had the same weights before the first or the second update."""
    before = [weights_before(rank) for rank in run.ranks]
    steps = min(2, *(len(mine) for mine in before))
    return any(
        all(distance(mine[step], before[0][step]) < SMALL for mine in before)
        for step in range(steps)
    )


def check_same_end(run: ObservedRun) -> None:
    """All ranks have the same weights at the end."""
    ends = [weights_at_end(rank) for rank in run.ranks]
    far = [distance(mine, ends[0]) for mine in ends]
    seen = far_away(far, "rank 0's weights")
    demand("all ranks have the same weights at the end", [one < COMPRESSED for one in far], seen)


def check_same_start(run: ObservedRun) -> None:
    """All ranks have rank 0's weights, at the latest after the first step."""
    before = [weights_before(rank) for rank in run.ranks]
    steps = min(2, *(len(mine) for mine in before))
    far = [min(distance(mine[s], before[0][s]) for s in range(steps)) for mine in before]
    seen = far_away(far, "rank 0's weights")
    wanted = "every rank goes on with rank 0's weights, at the latest after the first step"
    demand(wanted, [started_alike(run)] * run.np, seen)


def known_samples(kind: str, count: int | None = None) -> dict[float, int]:
    """Return the number of every digit image by its identity."""
    digits = load_digits()
    images = (digits.train_images if kind == "trained" else digits.test_images)[:count]
    return {identity: number for number, identity in enumerate(identities(images))}


def samples_of(rank: ObservedRank, kind: str, known: dict[float, int]) -> list[list[int]]:
    """Return the numbers of the samples of each batch. Raises Unmet for one that is not known."""
    try:
        return [[known[one] for one in batch] for batch in notes(rank, kind)]
    except KeyError:
        wanted = "the ranks train on the images of --data, as they are"
        raise Unmet(wanted, [f"rank {rank.rank}: got an image that is not among them"]) from None


def check_shares(run: ObservedRun) -> None:
    """In each epoch the ranks together see each sample once."""
    count, epochs = run.arguments["images"], run.arguments["epochs"]
    known = known_samples("trained", count)
    batches = [samples_of(rank, "trained", known) for rank in run.ranks]
    steps = {len(mine) for mine in batches}
    seen = [
        f"{len(mine) / epochs:g} steps and {sum(map(len, mine)) / epochs:g} images an epoch"
        for mine in batches
    ]
    wanted = f"in each epoch the {run.np} ranks, together, train on each of the {count} images once"
    demand(wanted, [len(steps) == 1 and not next(iter(steps)) % epochs], seen)
    per_epoch = next(iter(steps)) // epochs
    for epoch in range(epochs):
        part = slice(epoch * per_epoch, (epoch + 1) * per_epoch)
        times = Counter(one for mine in batches for batch in mine[part] for one in batch)
        if set(times.values()) != {1} or len(times) != count:
            more = sum(n > 1 for n in times.values())
            seen += [f"epoch {epoch + 1}: {len(times)} images were seen, {more} more than once"]
            raise Unmet(wanted, seen)
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
        {one for batch in samples_of(rank, "evaluated", known) for one in batch}
        for rank in run.ranks
    ]
    overlap = [sum(one in other for other in shares) for mine in shares for one in mine]
    seen = [f"evaluates {len(mine)} images" for mine in shares]
    wanted = f"each of the {len(known)} test images is evaluated by one rank"
    demand(wanted, [set(overlap) == {1} and len(overlap) == len(known)], seen)
    for name, by_image in (("accuracy", "correct"), ("loss", "losses")):
        values = [notes(rank, "end")[0][by_image] for rank in run.ranks]
        found = [mine[one] for mine, share in zip(values, shares, strict=True) for one in share]
        check_metric(run, f"{metrics}_{name}", name, float(np.mean(found)))


def check_metric(run: ObservedRun, report: str, name: str, wanted: float) -> None:
    """The last value that every rank reports is the wanted one."""
    reported = [float(np.ravel(rank.found(report))[-1]) for rank in run.ranks]
    demand(
        f"every rank has the {name} of the whole test set, {wanted:.4f}",
        [abs(mine - wanted) < SMALL * max(1, wanted) for mine in reported],
        [f"has {mine:.4f}" for mine in reported],
    )


def check_averaged_loss(run: ObservedRun) -> None:
    """For each epoch every rank has the mean of the ranks' losses, weighted by images or not."""
    own = np.array([rank.all_found("own_loss") for rank in run.ranks], np.float64)
    counts = [sum(map(len, notes(rank, "trained"))) for rank in run.ranks]
    means = [own.mean(axis=0), np.average(own, axis=0, weights=counts)]
    found = [np.array(mine, np.float64) for mine in run.found("losses")]
    met = [
        any(mine.shape == mean.shape and np.allclose(mine, mean, SMALL) for mean in means)
        for mine in found
    ]
    seen = [
        f"has {in_words(mine)}; its own are {in_words(one)}"
        for mine, one in zip(found, own, strict=True)
    ]
    demand(f"every rank has the mean of all ranks' losses: {in_words(means[0])}", met, seen)


def in_words(losses: np.ndarray) -> str:
    """Return losses as text."""
    return ", ".join(f"{loss:.4f}" for loss in np.ravel(losses)) or "none"
