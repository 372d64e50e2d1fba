"""What each step of ``mpi_concepts.py`` must make true, judged by what the ranks report."""

import random
from pathlib import Path
from typing import Any

import numpy as np

from hvdcourse.data import load_digits
from hvdcourse.evidence import ObservedRun, demand


def arguments(folder: Path) -> dict[str, Any]:
    """Return arguments for one check: an odd number of images, so that the shares differ."""
    return {
        "images": random.randrange(41, 90, 2),
        "summary": str(folder / "summary.txt"),
        "write_seconds": 0.5,
    }


def images_and_labels(run: ObservedRun) -> tuple[np.ndarray, np.ndarray]:
    """Return the images (n, 64) and labels (n,) that the script was given."""
    digits, count = load_digits(), run.arguments["images"]
    images = digits.train_images[:count].reshape(-1, 64).astype(np.float64)
    return images, digits.train_labels[:count]


def close(seen: Any, expected: np.ndarray) -> bool:
    """Whether two arrays have the same shape and are equal to seven digits."""
    seen = np.asarray(seen, dtype=np.float64)
    return seen.shape == expected.shape and np.allclose(seen, expected, rtol=1e-7, atol=1e-7)


def distance(seen: Any, expected: np.ndarray) -> str:
    """Say how far an array is from the expected one."""
    seen = np.asarray(seen, dtype=np.float64)
    if seen.shape != expected.shape:
        return f"an array of shape {seen.shape} instead of {expected.shape}"
    return f"off by up to {np.abs(seen - expected).max():.1g} a pixel"


def talked(run: ObservedRun, since: str, before: str) -> list[bool]:
    """Return for every rank whether it took part in a collective between two reports."""
    return [bool(rank.communicated(since, before)[-1]) for rank in run.ranks]


def after_talking(seen: list[str], spoke: list[bool]) -> list[str]:
    """Return what was seen of each rank, and whether a collective led to it."""
    return [
        f"{one}, {'after' if did else 'without'} a collective"
        for one, did in zip(seen, spoke, strict=True)
    ]


def check_place(run: ObservedRun) -> None:
    places = run.found("place")
    expected = [{"rank": r, "size": run.np, "local_rank": r} for r in range(run.np)]
    met = [place == wanted for place, wanted in zip(places, expected, strict=True)]
    demand(f"the ranks are 0 to {run.np - 1} of {run.np}, on one machine", met, places)


def check_share(run: ObservedRun) -> None:
    rows, count = run.found("rows"), run.arguments["images"]
    everything = sorted(row for mine in rows for row in mine)
    lengths = [len(mine) for mine in rows]
    met = everything == list(range(count)) and max(lengths) - min(lengths) <= 1
    seen = [f"{len(mine)} images, the first are {mine[:5]}" for mine in rows]
    demand(f"each of the {count} images belongs to exactly one rank", [met], seen)


def check_broadcast(run: ObservedRun) -> None:
    drawn, used = run.found("drawn"), run.found("direction")
    # Without a difference between the ranks there would be nothing to see.
    differ = all(not close(own, np.array(drawn[0])) for own in drawn[1:])
    met = [close(one, np.array(drawn[0])) and differ for one in used]
    seen = [
        f"uses {np.round(one[:3], 3)}…, had drawn {np.round(own[:3], 3)}…"
        for one, own in zip(used, drawn, strict=True)
    ]
    wanted = "every rank draws a direction of its own, and then uses the one that rank 0 has drawn"
    demand(wanted, met, seen)


def check_mean(run: ObservedRun) -> None:
    images, _ = images_and_labels(run)
    rows = [row for mine in run.found("rows") for row in mine]
    expected = images[rows].mean(axis=0)
    means, spoke = run.found("mean"), talked(run, "direction", "mean")
    met = [close(mean, expected) and did for mean, did in zip(means, spoke, strict=True)]
    seen = after_talking([distance(mean, expected) for mean in means], spoke)
    demand("every rank gets the mean over all ranks' images, by a collective", met, seen)


def check_gather(run: ObservedRun) -> None:
    scores, gathered = run.found("scores"), run.found("all_scores")
    expected = np.concatenate([np.array(mine) for mine in scores])
    spoke = talked(run, "scores", "all_scores")
    met = [close(one, expected) and did for one, did in zip(gathered, spoke, strict=True)]
    seen = after_talking([f"{len(one)} scores" for one in gathered], spoke)
    wanted = f"every rank gets all {len(expected)} scores, in the order of ranks, by a collective"
    demand(wanted, met, seen)


def check_regroup(run: ObservedRun) -> None:
    _, labels = images_and_labels(run)
    everything = [row for mine in run.found("rows") for row in mine]
    regrouped, spoke = run.found("regrouped"), talked(run, "all_scores", "regrouped")
    met = []
    for rank, mine in enumerate(regrouped):
        expected = sorted(row for row in everything if labels[row] % run.np == rank)
        met.append(sorted(mine) == expected and spoke[rank])
    seen = [f"{len(mine)} images of the digits {sorted(set(labels[mine]))}" for mine in regrouped]
    wanted = "rank r gets exactly the images whose digit d has d % size == r, by a collective"
    demand(wanted, met, after_talking(seen, spoke))


def check_reducescatter(run: ObservedRun) -> None:
    total = np.sum([np.array(one) for one in run.found("brightness")], axis=0)
    parts = np.split(total, run.np)
    mine, spoke = run.found("my_brightness"), talked(run, "brightness", "my_brightness")
    met = [close(one, part) and did for one, part, did in zip(mine, parts, spoke, strict=True)]
    seen = [f"{len(one)} pixels with a sum of {np.sum(one):.3f}" for one in mine]
    sums = ", ".join(f"{part.sum():.3f}" for part in parts)
    wanted = f"each rank gets its {64 // run.np} pixels summed over the ranks, by a collective"
    demand(f"{wanted} ({sums})", met, after_talking(seen, spoke))


def check_one_writer(run: ObservedRun) -> None:
    summaries = run.found("summary")
    path = Path(run.arguments["summary"])
    written = path.read_text().count("\n") if path.exists() else 0
    met = [written == 1 and text.count("\n") == 1 for text in summaries]
    seen = [f"read {text.count(chr(10))} lines from the summary" for text in summaries]
    seen[-1] += f"; in the end it has {written}"
    demand("one rank writes the summary, and every rank finds its one line there", met, seen)


STEPS = (
    (
        1,
        "Every process knows its place",
        "Three things: import horovod.tensorflow as hvd, call hvd.init() once, then ask "
        "hvd.rank(), hvd.size() and hvd.local_rank().",
        check_place,
    ),
    (
        2,
        "The images are shared out",
        "np.arange takes a start, an end and a stride. Which start and stride give every rank "
        "other numbers, and all ranks together all numbers?",
        check_share,
    ),
    (
        3,
        "All ranks use rank 0's direction",
        "hvd.broadcast(tensor, root_rank=…) returns the root rank's tensor on every rank. "
        ".numpy() turns the result into an array again.",
        check_broadcast,
    ),
    (
        4,
        "Every rank has the mean over all images",
        "Allreduce with op=hvd.Sum two things: the sum of your own images and how many they are. "
        "Then divide. hvd.Average would give the mean of means, which is another number.",
        check_mean,
    ),
    (
        5,
        "Every rank has all scores",
        "hvd.allgather joins what the ranks pass along the first axis, in the order of ranks.",
        check_gather,
    ),
    (
        6,
        "The images are regrouped by digit",
        "Sort your rows by their destination, count how many go to each rank (np.bincount with "
        "minlength=size), and pass both to hvd.alltoall(tensor, splits=…). It returns the tensor "
        "and how many rows came from each rank.",
        check_regroup,
    ),
    (
        7,
        "Each rank holds its part of the sum",
        "hvd.reducescatter(tensor, op=hvd.Sum) cuts along the first axis. Without op it averages.",
        check_reducescatter,
    ),
    (
        8,
        "One rank writes, all wait for it",
        "Write under `if rank == 0:`. Then let ALL ranks, not only rank 0, pass a barrier. "
        "Horovod's TensorFlow side has no barrier of its own; an allreduce of a single number is "
        "one.",
        check_one_writer,
    ),
)
