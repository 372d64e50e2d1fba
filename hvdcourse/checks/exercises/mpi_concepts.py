"""What each step of ``mpi_concepts.py`` must make true, judged by what the ranks report."""

from pathlib import Path
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import ObservedRun, demand
from hvdcourse.checks.exercise import (
    ALONE,
    UNEVEN_HOSTS,
    Exercise,
    Step,
    Trial,
    draw_count,
)
from hvdcourse.data.sets import load_digits


def arguments(summary: Path) -> dict[str, Any]:
    """Return arguments for one run: a number of images that no number of ranks shares evenly."""
    return {
        "images": draw_count(41, 89),
        "summary": str(summary),
        "write_seconds": 0.5,
    }


def images_and_labels(run: ObservedRun) -> tuple[np.ndarray, np.ndarray]:
    """Return the images (n, 64) and labels (n,) that the script was given."""
    digits, count = load_digits(), run.arguments["images"]
    images = digits.train_images[:count].reshape(-1, 64).astype(np.float64)
    return images, digits.train_labels[:count]


def close(value: Any, expected: np.ndarray) -> bool:
    """Whether two arrays have the same shape and are equal to seven digits."""
    array = np.asarray(value, dtype=np.float64)
    return array.shape == expected.shape and np.allclose(array, expected, rtol=1e-7, atol=1e-7)


def error_in_words(value: Any, expected: np.ndarray) -> str:
    """Say how far an array is from the expected one."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape != expected.shape:
        return f"an array of shape {array.shape} instead of {expected.shape}"
    return f"off by up to {np.abs(array - expected).max():.1g} a pixel"


def took_part(run: ObservedRun, since: str, before: str) -> list[bool]:
    """Return for every rank whether it took part in a collective between two reports.

    A rank that is alone need not.
    """
    return [run.np == 1 or bool(rank.communicated(since, before)[-1]) for rank in run.ranks]


def demand_by_collective(
    expected: str, right: list[bool], collective: list[bool], lines: list[str]
) -> None:
    """Raise Unmet unless every rank's result is right, and a collective led to it."""
    demand(
        expected,
        [is_right and called for is_right, called in zip(right, collective, strict=True)],
        [
            f"{line}, {'after' if called else 'without'} a collective"
            for line, called in zip(lines, collective, strict=True)
        ],
    )


def check_place(run: ObservedRun) -> None:
    places = run.reported("place")
    demand(
        f"the ranks are 0 to {run.np - 1} of {run.np}, and their local ranks "
        + ", ".join(map(str, run.local_ranks)),
        [
            place == {"rank": rank, "size": run.np, "local_rank": local_rank}
            for (rank, place), local_rank in zip(enumerate(places), run.local_ranks, strict=True)
        ],
        places,
    )


def check_share(run: ObservedRun) -> None:
    shares, count = run.reported("rows"), run.arguments["images"]
    lengths = [len(rows) for rows in shares]
    once = sorted(row for rows in shares for row in rows) == list(range(count))
    demand(
        f"each of the {count} images belongs to exactly one rank",
        [once and max(lengths) - min(lengths) <= 1],
        [f"{len(rows)} images, the first are {rows[:5]}" for rows in shares],
    )


def check_broadcast(run: ObservedRun) -> None:
    drawn, used = run.reported("drawn"), run.reported("direction")
    # Without a difference between the ranks there would be nothing to see.
    differ = all(not close(own, np.array(drawn[0])) for own in drawn[1:])
    demand(
        "every rank draws a direction of its own, and then uses the one that rank 0 has drawn",
        [close(direction, np.array(drawn[0])) and differ for direction in used],
        [
            f"uses {np.round(direction[:3], 3)}…, had drawn {np.round(own[:3], 3)}…"
            for direction, own in zip(used, drawn, strict=True)
        ],
    )


def check_mean(run: ObservedRun) -> None:
    images, _ = images_and_labels(run)
    all_rows = [row for rows in run.reported("rows") for row in rows]
    expected, means = images[all_rows].mean(axis=0), run.reported("mean")
    demand_by_collective(
        "every rank gets the mean over all ranks' images, by a collective",
        [close(mean, expected) for mean in means],
        took_part(run, "direction", "mean"),
        [error_in_words(mean, expected) for mean in means],
    )


def check_gather(run: ObservedRun) -> None:
    expected = np.concatenate([np.array(scores) for scores in run.reported("scores")])
    gathered = run.reported("all_scores")
    demand_by_collective(
        f"every rank gets all {len(expected)} scores, in the order of ranks, by a collective",
        [close(scores, expected) for scores in gathered],
        took_part(run, "scores", "all_scores"),
        [f"{len(scores)} scores" for scores in gathered],
    )


def check_regroup(run: ObservedRun) -> None:
    _, labels = images_and_labels(run)
    all_rows = sorted(row for rows in run.reported("rows") for row in rows)
    regrouped = run.reported("regrouped")
    demand_by_collective(
        "rank r gets exactly the images whose digit d has d % size == r, by a collective",
        [
            sorted(rows) == [row for row in all_rows if labels[row] % run.np == rank]
            for rank, rows in enumerate(regrouped)
        ],
        took_part(run, "all_scores", "regrouped"),
        [f"{len(rows)} images of the digits {sorted(set(labels[rows]))}" for rows in regrouped],
    )


def check_reducescatter(run: ObservedRun) -> None:
    total = np.sum([np.array(brightness) for brightness in run.reported("brightness")], axis=0)
    parts, received = np.array_split(total, run.np), run.reported("my_brightness")
    met = [close(pixels, part) for pixels, part in zip(received, parts, strict=True)]
    collective = took_part(run, "brightness", "my_brightness")
    lines = [f"{len(pixels)} pixels with a sum of {np.sum(pixels):.3f}" for pixels in received]
    sums = ", ".join(f"{len(part)} with a sum of {part.sum():.3f}" for part in parts)
    demand_by_collective(
        f"each rank gets its own pixels ({sums}) summed over the ranks, by a collective",
        met,
        collective,
        lines,
    )


def check_one_writer(run: ObservedRun) -> None:
    summaries = run.reported("summary")
    path = Path(run.arguments["summary"])
    written = path.read_text().count("\n") if path.exists() else 0
    lines = [f"read {text.count(chr(10))} lines from the summary" for text in summaries]
    lines[-1] += f"; in the end it has {written}"
    demand(
        "one rank writes the summary, and every rank finds its one line there",
        [written == 1 and text.count("\n") == 1 for text in summaries],
        lines,
    )


STEPS = (
    Step(
        number=1,
        title="Every process knows its place",
        hint=(
            "Three things: import horovod.tensorflow as hvd, call hvd.init() once, then ask "
            "hvd.rank(), hvd.size() and hvd.local_rank()."
        ),
        check=check_place,
    ),
    Step(
        number=2,
        title="The images are shared out",
        hint=(
            "np.arange takes a start, an end and a stride. Which start and stride give every rank "
            "other numbers, and all ranks together all numbers?"
        ),
        check=check_share,
    ),
    Step(
        number=3,
        title="All ranks use rank 0's direction",
        hint=(
            "hvd.broadcast(tensor, root_rank=…) returns the root rank's tensor on every rank. "
            ".numpy() turns the result into an array again."
        ),
        check=check_broadcast,
    ),
    Step(
        number=4,
        title="Every rank has the mean over all images",
        hint=(
            "Allreduce with op=hvd.Sum two things: the sum of your own images and how many they "
            "are. Then divide. hvd.Average would give the mean of means, which is another number."
        ),
        check=check_mean,
    ),
    Step(
        number=5,
        title="Every rank has all scores",
        hint=(
            "hvd.allgather joins what the ranks pass along the first axis, in the order of ranks."
        ),
        check=check_gather,
    ),
    Step(
        number=6,
        title="The images are regrouped by digit",
        hint=(
            "Sort your rows by their destination, count how many go to each rank (np.bincount with "
            "minlength=size), and pass both to hvd.alltoall(tensor, splits=…). It returns the "
            "tensor and how many rows came from each rank."
        ),
        check=check_regroup,
    ),
    Step(
        number=7,
        title="Each rank holds its part of the sum",
        hint=(
            "hvd.reducescatter(tensor, op=hvd.Sum) cuts along the first axis. Without op it "
            "averages."
        ),
        check=check_reducescatter,
    ),
    Step(
        number=8,
        title="One rank writes, all wait for it",
        hint=(
            "Write under `if rank == 0:`. Then let ALL ranks, not only rank 0, pass a barrier. "
            "Horovod's TensorFlow side has no barrier of its own; an allreduce of a single number "
            "is one."
        ),
        check=check_one_writer,
    ),
)

EXERCISE = Exercise(
    name="mpi_concepts",
    notebook="01_mpi_concepts",
    backend="gloo",
    observe="horovod",
    trials=lambda folder: [
        Trial(hosts=UNEVEN_HOSTS, arguments=arguments(folder / "summary.txt")),
        Trial(hosts=ALONE, arguments=arguments(folder / "summary_alone.txt")),
    ],
    steps=STEPS,
)
