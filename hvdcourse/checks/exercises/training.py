"""What distributed training must make true, judged by what each rank noted of it."""

from pathlib import Path
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import ObservedRank, ObservedRun, counted, demand, percent
from hvdcourse.checks.exercises.training_notes import (
    COMPRESSED,
    SMALL,
    demand_finite,
    distance,
    far_away,
    gradients,
    notes,
    weights_at_end,
    weights_before,
)


def check_place(run: ObservedRun) -> None:
    """Every rank knows its place, and sees one GPU: that of its local rank, if there are any."""
    if run.np == 1 and not notes(run.ranks[0], "place")[0]["gpus"]:
        return
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
        return "Horovod was not initialized"
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
            f"printed {counted(len(lines), 'line')}" + (f": {lines[0]!r}…" if lines else "")
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
        [
            f"wrote {counted(len(names), 'file')}" + (f": {names[0]}…" if names else "")
            for names in written
        ],
    )


def check_mean_gradient(run: ObservedRun) -> None:
    """Every update is made with the mean of all ranks' own gradients."""
    own = [gradients(rank, "gradient") for rank in run.ranks]
    used = [gradients(rank, "update") for rank in run.ranks]
    counts = [(len(computed), len(applied)) for computed, applied in zip(own, used, strict=True)]
    demand(
        "all ranks make the same number of updates, one for each gradient",
        [len({count for pair in counts for count in pair}) == 1],
        [f"{computed} gradients, {applied} updates" for computed, applied in counts],
    )
    mean = np.mean(own, axis=0)
    # Ranks with the same weights and the same samples have the same gradients, averaged or not.
    alike = all(distance(computed, own[0]) < COMPRESSED for computed in own[1:])
    averaged = [run.np == 1 or not alike or averages_gradients(rank) for rank in run.ranks]
    demand(
        "in every step all ranks use the mean of all ranks' gradients",
        [
            distance(applied, mean) < COMPRESSED and was
            for applied, was in zip(used, averaged, strict=True)
        ],
        [
            f"its updates use {gradient_in_words(applied, mean, own, rank)}"
            if was
            else "its gradients were never averaged"
            for rank, (applied, was) in enumerate(zip(used, averaged, strict=True))
        ],
    )


def gradient_in_words(used: np.ndarray, mean: np.ndarray, own: list[np.ndarray], rank: int) -> str:
    """Say what the gradients of a rank's updates are, compared with the mean of all ranks' own."""
    if used.shape != mean.shape:
        return "gradients of other variables than it has computed them for"
    away = distance(used, mean)
    if away < COMPRESSED:
        return "the mean"
    if distance(used, own[rank]) < COMPRESSED:
        return "only its own gradients"
    for other, computed in enumerate(own):
        if distance(used, computed) < COMPRESSED:
            return f"the gradients of rank {other}"
    factor = float(
        np.vdot(used[..., :-1], mean[..., :-1]) / np.vdot(mean[..., :-1], mean[..., :-1])
    )
    if factor and distance(used / factor, mean) < COMPRESSED:
        return f"{factor:.3g} times the mean"
    return f"gradients {percent(away)} away from the mean"


def averages_gradients(rank: ObservedRank) -> bool:
    """Whether the rank has put a gradient's worth of bytes, or half of it, into allreduces."""
    return rank.allreduced_bytes() > much(rank)


def much(rank: ObservedRank) -> float:
    """Return a number of bytes that half of a gradient exceeds, and no number of a metric's."""
    return notes(rank, "place")[0]["bytes"] / 3


def took_the_mean(before: list[np.ndarray]) -> bool:
    """Whether a step has brought rank 0 nearer to the mean of all first weights than to its own."""
    first = np.array([weights[0] for weights in before])[..., :-1]
    second = before[0][1:2, :, :-1]
    from_mean, from_own = (np.linalg.norm(second - other) for other in (first.mean(0), first[0]))
    return bool(from_mean < 0.9 * from_own)


def check_same_start(run: ObservedRun) -> None:
    """All ranks have rank 0's weights, at the latest after the first step, and its state."""
    before = [weights_before(rank) for rank in run.ranks]
    steps = range(min(2, *(len(weights) for weights in before)))
    far = [min(distance(weights[s], before[0][s]) for s in steps) for weights in before]
    roots = {
        root
        for rank in run.ranks
        for root, sent in rank.broadcast_bytes().items()
        if sent > much(rank)
    }
    alike = any(all(distance(w[s], before[0][s]) < SMALL for w in before) for s in steps)
    averaged = alike and took_the_mean(before)
    wrong = f"weights of rank {max(roots)}" if roots - {0} else "mean of all ranks' weights"
    demand(
        "every rank goes on with rank 0's weights, at the latest after the first step",
        [alike and roots <= {0} and not averaged] * run.np,
        [f"got the {wrong}" for _ in far]
        if averaged or roots - {0}
        else far_away(far, "rank 0's weights"),
    )
    used = [gradients(rank, "update") for rank in run.ranks]
    # Where they use different gradients, that is the mistake of another step.
    if all(distance(applied, used[0]) < COMPRESSED for applied in used):
        check_same_end(run)


def check_broadcast_start(run: ObservedRun) -> None:
    """All ranks have rank 0's weights, and not because all draw them with one seed."""
    check_same_start(run)
    sent = [run.np == 1 or rank.broadcast_bytes()[0] > much(rank) for rank in run.ranks]
    demand(
        "a broadcast hands out rank 0's weights",
        sent,
        ["got them" if of_rank else "nothing of their size was broadcast" for of_rank in sent],
    )


def check_same_end(run: ObservedRun) -> None:
    """All ranks have the same weights at the end."""
    ends = [weights_at_end(rank) for rank in run.ranks]
    far = [distance(weights, ends[0]) for weights in ends]
    demand(
        "all ranks have the same weights at the end. They start with the same weights and use the "
        "same gradients: what may still differ is the state of rank 0's optimizer",
        [away < COMPRESSED for away in far],
        far_away(far, "rank 0's weights"),
    )


def check_averaged_loss(run: ObservedRun) -> None:
    """For each epoch every rank has the mean of the ranks' losses, weighted by images or not."""
    for rank in run.ranks:
        demand_finite(rank)
    kinds = np.stack([epoch_losses(rank, run.arguments["epochs"]) for rank in run.ranks], axis=1)
    images = [sum(map(len, notes(rank, "trained"))) for rank in run.ranks]
    means = [*kinds.mean(axis=1), *(np.average(own, axis=0, weights=images) for own in kinds)]
    reported = run.numbers("losses")
    demand(
        f"every rank has the mean of all ranks' losses: {in_words(means[0])}",
        [
            any(losses.shape == mean.shape and np.allclose(losses, mean, SMALL) for mean in means)
            for losses in reported
        ],
        [
            f"has {in_words(losses)}{whose_losses(losses, kinds, means[0], rank)}"
            for rank, losses in enumerate(reported)
        ],
    )


def epoch_losses(rank: ObservedRank, epochs: int) -> np.ndarray:
    """Return the rank's own mean loss of each epoch: first over its images, then over its steps."""
    steps = zip(notes(rank, "loss"), map(len, notes(rank, "trained")), strict=False)
    parts = [np.transpose(part) for part in np.array_split(list(steps), epochs)]
    return np.transpose([[np.average(loss, weights=of), loss.mean()] for loss, of in parts])


def whose_losses(losses: np.ndarray, kinds: np.ndarray, mean: np.ndarray, rank: int) -> str:
    """Say which known mistake a rank's losses are; "" for none. ``kinds`` are the ranks' own."""
    mistakes = {
        ", which are its own": kinds[:, rank],
        ", the sum of the ranks' losses": kinds.sum(axis=1),
        ", those of rank 0": kinds[:, 0],
    }
    same = (
        words
        for words, wrong in mistakes.items()
        if any(losses.shape == of.shape and np.allclose(losses, of, SMALL) for of in wrong)
    )
    if losses.shape != mean.shape:
        return f": {counted(losses.size, 'number')} for {counted(mean.size, 'epoch')}"
    factor = float(np.median(losses / mean))
    # Only about so many times: images may be weighted in another way.
    scaled = abs(factor - 1) > 0.1 and np.allclose(losses, factor * mean, COMPRESSED)
    return next(same, f", {factor:.2g} times the mean" if scaled else "")


def in_words(losses: np.ndarray) -> str:
    """Return losses as text."""
    return ", ".join(f"{loss:.4f}" for loss in np.ravel(losses)) or "none"
