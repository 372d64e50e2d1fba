"""What each step of ``mpi_concepts.py`` must make true, judged by what the ranks report."""

import random
from pathlib import Path
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import ObservedRun, Unmet, counted, demand, demand_of_run
from hvdcourse.checks.exercise import ALONE, UNEVEN_HOSTS, Exercise, Step, Trial
from hvdcourse.checks.exercises.collective_results import (
    close,
    demand_by_collective,
    in_short,
    took_part,
    which,
)
from hvdcourse.data.sets import DataSet, load_digits
from hvdcourse.rank.own_digits import digits_of_rank

# Stands in the summary of some runs from the start.
EARLIER_LINE = "mean brightness of an earlier run\n"
# The reports between which the summary is written.
AROUND_THE_WRITING = ("my_brightness", "summary")


def trials(folder: Path) -> list[Trial]:
    """Return the runs of one check."""
    earlier = folder / "summary.txt"
    earlier.write_text(EARLIER_LINE)

    def arguments(images: int, summary: Path) -> dict[str, Any]:
        return {"images": images, "summary": str(summary), "write_seconds": 0.5}

    return [
        # More images than a byte can count; 3 ranks' equal shares leave 2 over.
        Trial(hosts=UNEVEN_HOSTS, arguments=arguments(6 * random.randrange(45, 60) + 5, earlier)),
        # Each wrong way to share unevenly shows for what 5 ranks' equal shares leave over, 2 or 3
        # images, and for the 4 pixels. Shared in turn or in blocks, one of the ranks has no image
        # for the last one. On 2 + 1 the local rank is also rank % 2; on 1 + 4 it is not.
        Trial(
            hosts=(1, 4),
            arguments=arguments(random.choice((22, 23)), folder / "another.txt"),
            steps=(1, 2, 6, 7),
        ),
        # There are fewer images than are asked for.
        Trial(
            hosts=ALONE,
            arguments=arguments(random.randrange(1500, 2000), folder / "alone.txt"),
        ),
    ]


def count_images(run: ObservedRun) -> int:
    """Return how many images the script looks at."""
    return min(run.arguments["images"], len(load_digits().train_images))


def digits_of_ranks(run: ObservedRun) -> list[DataSet]:
    """Return for each rank the digits that its script was given."""
    digits = load_digits()
    return [digits_of_rank(digits, rank) for rank in range(run.np)]


def images_of_ranks(run: ObservedRun) -> list[np.ndarray]:
    """Return for each rank the images (n, 64) that its script was given."""
    given = [digits.train_images[: count_images(run)] for digits in digits_of_ranks(run)]
    return [images.reshape(-1, 64).astype(float) for images in given]


def own_rows(run: ObservedRun) -> list[np.ndarray]:
    """Return the numbers of each rank's images. Raises Unmet for what cannot be such numbers."""
    count, rows = count_images(run), run.numbers("rows")
    demand(
        f"the rows are numbers of images, from 0 to {count - 1}",
        [set(of_rank) <= set(range(count)) for of_rank in rows],
        [f"has the rows {in_short(of_rank)}" for of_rank in rows],
    )
    return [of_rank.astype(int) for of_rank in rows]


def check_place(run: ObservedRun) -> None:
    places, size = run.reported("place"), run.np
    expected = [
        {"rank": rank, "size": size, "local_rank": local_rank}
        for rank, local_rank in enumerate(run.local_ranks)
    ]
    demand(
        f"the ranks are 0 to {size - 1} of {size}, and their local ranks "
        + ", ".join(map(str, run.local_ranks)),
        [place == right for place, right in zip(places, expected, strict=True)],
        [f"reported {place}" for place in places],
    )


def check_share(run: ObservedRun) -> None:
    shares, count = own_rows(run), count_images(run)
    lengths = [len(rows) for rows in shares]
    times = np.bincount(np.concatenate(shares), minlength=count)
    lines = [
        f"rank {rank}: {len(rows)} images, {in_short(rows)}" for rank, rows in enumerate(shares)
    ]
    if (times != 1).any():
        without, several = (times == 0).sum(), (times > 1).sum()
        lines.append(f"all ranks: images without a rank: {without}, with several ranks: {several}")
    demand_of_run(
        f"each of the {count} images belongs to exactly one rank, and the shares differ by at most "
        "one image",
        (times == 1).all() and max(lengths) - min(lengths) <= 1,
        *lines,
    )


def check_broadcast(run: ObservedRun) -> None:
    drawn, used = run.numbers("drawn"), run.numbers("direction")
    # Without a difference between the ranks there would be nothing to see.
    differ = all(not close(own, drawn[0]) for own in drawn[1:])
    demand(
        "every rank draws a direction of its own, and then uses the one that rank 0 has drawn",
        [close(direction, drawn[0]) and differ for direction in used],
        [
            f"uses {whose(direction, drawn, rank)}" if differ else "drew the same as rank 0"
            for rank, direction in enumerate(used)
        ],
    )


def whose(direction: np.ndarray, drawn: list[np.ndarray], rank: int) -> str:
    """Say which rank drew a direction."""
    by = [other for other, of_rank in enumerate(drawn) if close(direction, of_rank)]
    if not by and close(direction, np.mean(drawn, axis=0)):
        return "the mean of all ranks' directions"
    if not by:
        return f"a direction that no rank has drawn, {in_short(direction)}"
    return "the one that it has drawn itself" if rank in by else f"the one of rank {by[0]}"


def check_mean(run: ObservedRun) -> None:
    given, shares, means = images_of_ranks(run), own_rows(run), run.numbers("mean")
    parts = [images[rows] for images, rows in zip(given, shares, strict=True)]
    expected = np.concatenate(parts).mean(axis=0)
    by_rank = [part.mean(axis=0) if len(part) else expected for part in parts]
    mistakes = {
        "the sum over the images, not divided by their number": expected * sum(map(len, parts)),
        "the mean of the ranks' means, which ignores that shares differ in length": np.mean(
            by_rank, axis=0
        ),
        "the sum of the ranks' means": np.sum(by_rank, axis=0),
        "the sum over the images, divided by the number of ranks": (
            expected * sum(map(len, parts)) / run.np
        ),
    }
    lines = []
    for rank, (mean, images) in enumerate(zip(means, given, strict=True)):
        own = {
            "the mean of its own share only": by_rank[rank],
            "the mean of its own copy of all images; those of the other ranks differ from it in "
            "this run": images.mean(axis=0),
            "the sum divided by --images, though there are fewer": (
                expected * sum(map(len, parts)) / run.arguments["images"]
            ),
            "the sum divided as if all ranks had as many images as this one": (
                expected * sum(map(len, parts)) / max(1, len(parts[rank]) * run.np)
            ),
        }
        lines.append("has " + which(mean, expected, {**mistakes, **own}))
    demand_by_collective(
        "every rank has the mean over all ranks' images, by a collective",
        [close(mean, expected) for mean in means],
        took_part(run, "direction", "mean"),
        lines,
    )


def check_gather(run: ObservedRun) -> None:
    scores, gathered = run.numbers("scores"), run.numbers("all_scores")
    means, directions = run.numbers("mean"), run.numbers("direction")
    used = zip(images_of_ranks(run), own_rows(run), means, directions, strict=True)
    own = [(images[rows] - mean) @ direction for images, rows, mean, direction in used]
    demand(
        "every rank computes its scores with the mean and the direction that it reports",
        # Sums of 64 terms in float32 are as close as that. Another mean may by chance be as near in
        # the direction that was drawn, in far less than one of a million runs.
        [np.allclose(*pair, atol=1e-4) for pair in zip(scores, own, strict=True)],
        ["has scores of another mean or direction"] * run.np,
    )
    expected = np.concatenate(scores)
    sizes = {len(of_rank) for of_rank in scores}
    mistakes = {
        "all scores, but not in the order of ranks": np.sort(expected),
        "the sum of the ranks' scores": np.sum(scores, axis=0) if len(sizes) == 1 else np.empty(0),
    }
    demand_by_collective(
        f"every rank has all {len(expected)} scores, in the order of ranks, by a collective",
        [close(of_rank, expected) for of_rank in gathered],
        took_part(run, "scores", "all_scores"),
        [
            "has only its own scores"
            if close(of_rank, own)
            else f"has {which(in_order(of_rank, expected), expected, mistakes)}"
            for of_rank, own in zip(gathered, scores, strict=True)
        ],
    )


def in_order(scores: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return scores sorted where they are the expected ones in another order."""
    return np.sort(scores) if not close(scores, expected) else scores


def check_regroup(run: ObservedRun) -> None:
    held = zip(own_rows(run), digits_of_ranks(run), strict=True)
    sent = [(row, digits.train_labels[row] % run.np) for rows, digits in held for row in rows]
    regrouped = run.numbers("regrouped")
    expected = [sorted(row for row, to in sent if to == rank) for rank in range(run.np)]
    lines = []
    for rank, rows in enumerate(regrouped):
        missing, extra = len(set(expected[rank]) - set(rows)), len(set(rows) - set(expected[rank]))
        lines.append(
            f"has {len(rows)} images: {missing} missing, {extra} that belong to other ranks"
        )
    demand_by_collective(
        "rank r has exactly the images whose digit d, on the rank that held them, has "
        "d % size == r, by a collective",
        [sorted(rows) == right for rows, right in zip(regrouped, expected, strict=True)],
        took_part(run, "all_scores", "regrouped"),
        lines,
        alone=True,
    )


def check_reducescatter(run: ObservedRun) -> None:
    brightness, received = run.numbers("brightness"), run.numbers("my_brightness")
    total = np.sum(brightness, axis=0)
    parts = np.array_split(total, run.np)
    lines = []
    for rank, (pixels, own) in enumerate(zip(received, brightness, strict=True)):
        mistakes = {
            "the average over the ranks, not the sum": parts[rank] / run.np,
            "the sums of all 64 pixels, not only of its own part": total,
            "every size-th pixel, not pixels that follow each other": total[rank :: run.np],
            "its own brightness, to which no other rank's was added": own,
            "its part of its own brightness, to which no other rank's was added": np.array_split(
                own, run.np
            )[rank],
        }
        lines.append("has " + which(pixels, parts[rank], mistakes))
    sizes = ", ".join(str(len(part)) for part in parts)
    demand_by_collective(
        f"each rank has its own pixels, {sizes} of the 64, summed over the ranks, by a collective",
        [close(pixels, part) for pixels, part in zip(received, parts, strict=True)],
        took_part(run, "brightness", "my_brightness"),
        lines,
    )


def check_one_writer(run: ObservedRun) -> None:
    path = Path(run.arguments["summary"])
    texts = [*map(str, run.reported("summary")), path.read_text() if path.exists() else ""]
    *read, written = (text.removeprefix(EARLIER_LINE).count("\n") for text in texts)
    lines = [f"read {counted(count, 'line')} from the summary" for count in read]
    left = f"afterwards {counted(written, 'line')} stood there"
    if texts[-1].startswith(EARLIER_LINE):
        left += ", below one that the check had put there before the run"
    try:
        demand_by_collective(
            "one rank writes the summary, and every rank finds its one line there, after a "
            "collective that makes it wait",
            [written == count == 1 for count in read],
            took_part(run, *AROUND_THE_WRITING),
            lines,
            alone=True,
        )
    except Unmet as unmet:
        raise Unmet(unmet.expected, [*unmet.seen, left]) from None
    demand_waiting_after_the_writing(run, path)


def demand_waiting_after_the_writing(run: ObservedRun, path: Path) -> None:
    """Raise Unmet where the last collective was over before the summary was written.

    The others may find its line all the same, if they sleep or look again and again.
    """
    times = [
        call["time"] for rank in run.ranks for call in rank.communicated(*AROUND_THE_WRITING)[-1]
    ]
    if times and path.exists():
        demand_of_run(
            "every rank waits in a collective until the summary is written",
            max(times) >= path.stat().st_mtime,
            "the last collective was over before the summary was written",
        )


STEPS = (
    Step(number=1, title="Every process knows its place", check=check_place),
    Step(number=2, title="The images are shared out", check=check_share),
    Step(number=3, title="All ranks use rank 0's direction", check=check_broadcast),
    Step(number=4, title="Every rank has the mean over all images", check=check_mean),
    Step(number=5, title="Every rank has all scores", check=check_gather),
    Step(number=6, title="The images are regrouped by digit", check=check_regroup),
    Step(number=7, title="Each rank holds its part of the sum", check=check_reducescatter),
    Step(number=8, title="One rank writes, all wait for it", check=check_one_writer),
)

EXERCISE = Exercise(
    name="mpi_concepts",
    notebook="01_mpi_concepts",
    observe="concepts",
    trials=trials,
    steps=STEPS,
)
