"""The judge of the challenge: what gets points, what loses them, and that no evidence gets none.

Each wrong program is run once, in those of the judge's runs that its mistake shows in.
"""

import io
import itertools
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from verdicts import SOLUTIONS
from watching import watched

from hvdcourse.challenge.evidence import Evidence, Gallery
from hvdcourse.challenge.judge import (
    UNTOUCHED,
    Runner,
    challenge,
    score_of,
    some_of_each,
    uneven_steps,
    was_killed,
)
from hvdcourse.challenge.measures import images_per_second
from hvdcourse.challenge.parts import PARTS, first_difference, in_proportion
from hvdcourse.challenge.score import PartScore, Score
from hvdcourse.checks.evidence import ObservedRun
from hvdcourse.data.image_folder import find_images, read_images
from hvdcourse.data.painters import draw_pictures
from hvdcourse.errors import BadInput
from hvdcourse.launch.result import RankResult, RunResult
from hvdcourse.launch.run import run
from hvdcourse.rank.thumbnails import all_views, recognized, thumbnails

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(300)]

SOLUTION = SOLUTIONS / "artists_resnet.py"
# The parts that the run on 4 ranks alone decides; here it is made on 2, which is quicker.
BY_FOUR = {"gradients", "start", "evaluation", "one voice"}
BY_A_KILL = {"one writer", "resume"}


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Return a small gallery to judge with: 159 pictures to train on, and 79 to test."""
    folder = tmp_path_factory.mktemp("gallery")
    draw_pictures(folder, 0.1)
    return find_images(folder)


def changed(*changes: tuple[str, str]) -> str:
    """Return the solution with each first text, which stands there once, replaced."""
    text = SOLUTION.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def points_of(text: str, images, runs: tuple[str, ...]) -> dict[str, PartScore]:
    """Judge a program's text by some of the runs, and return the scores by part."""
    with watched() as temporary:
        script = temporary / "artists_resnet.py"
        script.write_text(text)
        runner = Runner(script, images, temporary, lambda line: None)
        runner.run_small(runs, most_ranks=2)
        return {part.name: score_of(part, runner.evidence) for part in PARTS}


def lost(scores: dict[str, PartScore], parts: set[str]) -> set[str]:
    return {name for name in parts if scores[name].points == 0}


# Mistakes that cost different parts share a run.
WRONG = {
    "no broadcast, everybody evaluates everything, and everybody reports": (
        {"start", "evaluation", "one voice"},
        ("four",),
        [
            ("    broadcast_variables(variables, root_rank=0)\n", ""),
            (
                '    """Return this rank\'s share of the test images, and its labels."""\n'
                "    mine = shard(len(paths), hvd.rank(), hvd.size())",
                "    mine = np.arange(len(paths))",
            ),
            ("in report.items() if hvd.rank() == 0 else ():", "in report.items():"),
        ],
    ),
    "each rank evaluates with moving averages of its own": (
        {"evaluation"},
        ("four",),
        [("callbacks = [AverageStatistics(), ", "callbacks = [")],
    ),
    "no averaging": (
        {"gradients", "start"},
        ("four",),
        [("hvd.DistributedOptimizer(tf.keras", "(tf.keras")],
    ),
    "checkpoints by one rank a host, and no resume": (
        {"one writer", "resume"},
        ("killed", "resumed"),
        [("    if arguments.folder and first:",
          "    if arguments.folder and hvd.local_rank() == 0:"),
         ("first_epoch = checkpoints.load_newest()", "pass")],
    ),
    "no sharding": (
        {"shares"},
        ("alone", "killed", "four"),
        [("    mine = shard(len(paths), hvd.rank(), hvd.size())\n    lengths",
          "    mine = np.arange(len(paths))\n    lengths"),
         ("batches(len(paths), hvd.rank(), hvd.size(), arguments.batch_size)",
          "batches(len(paths), 0, 1, arguments.batch_size)")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_loses_its_own_points_and_no_others(mistake, images):
    losing, runs, changes = WRONG[mistake]
    scores = points_of(changed(*changes), images, runs)
    parts = (BY_FOUR if "four" in runs else BY_A_KILL) | losing
    assert lost(scores, parts) == losing, scores
    assert all(scores[name].words for name in losing)


def test_ranks_that_train_on_the_same_images_are_named(images):
    _, _, changes = WRONG["no sharding"]
    words = points_of(changed(*changes), images, ("alone", "killed", "resumed"))
    assert "ranks 0 and 1 train on the same images" in words["shares"].words
    assert words["shares"].words.splitlines()[-1].startswith("expected: ")
    assert "see shares" in words["resume"].words


def test_where_ranks_begin_different_numbers_of_steps_the_judge_says_so():
    batches = [{"note": "batch", "value": {}}] * 3
    ranks = [RankResult(rank, 0, evidence=batches[rank:]) for rank in range(2)]
    result = RunResult("", 2, "standstill", 1, 1, ranks, [])
    assert uneven_steps(result).endswith("rank 0: 3, rank 1: 2")
    assert not uneven_steps(replace(result, ranks=ranks[:1]))


# That the solution has points in every part, lesson 7 shows: test_notebooks.py runs it.
def test_the_untouched_program_runs_and_has_no_other_points(images):
    scores = points_of(UNTOUCHED.read_text(), images, ("alone", "killed", "resumed", "four"))
    assert scores["runs"].points == 5
    others = set(scores) - {"runs"}
    assert lost(scores, others) == others


@pytest.mark.parametrize("text", ["\n", "import os; os._exit(0)\n", "raise RuntimeError('no')\n"])
def test_a_program_that_does_nothing_has_no_points(text, images):
    scores = points_of(text, images, ("alone", "killed", "resumed", "four"))
    assert sum(part.points for part in scores.values()) == 0
    assert all(part.words for part in scores.values())


SIZES = [(64, 64), (100, 30), (7, 90), (31, 33)]


def test_the_solution_learns_from_a_gallery_of_pictures_of_any_size(tmp_path):
    for part, name in itertools.product(("train", "test"), ("ann", "ben")):
        (tmp_path / part / name).mkdir(parents=True)
        for number, size in enumerate(SIZES):
            file = tmp_path / part / name / f"{number}.{'png' if number % 2 else 'jpg'}"
            Image.new("L" if number == 2 else "RGB", size, number).save(file)
    result = run(SOLUTION, np=1, data=str(tmp_path), epochs=1, quiet=True, timeout=150)
    (report,) = [e["value"] for e in result.ranks[0].evidence if e.get("report") == "report"]
    assert {name: exist for name, (_, exist, _) in report.items()} == {"ann": 4, "ben": 4}


def test_images_are_recognized_however_they_are_decoded_scaled_and_turned(images):
    pixels = read_images(images.train_paths)
    views = all_views(pixels)
    noisy = pixels + np.random.default_rng(0).normal(0, 2, pixels.shape)
    for variant in (noisy, pixels / 127.5 - 1, pixels[:, :, ::-1], np.rot90(pixels, axes=(1, 2))):
        assert recognized(thumbnails(variant), views).tolist() == list(range(len(pixels)))
    assert set(recognized(thumbnails(read_images(images.test_paths)), views)) == {-1}
    assert recognized([], views).tolist() == []


def test_some_of_each_painter_are_taken(images):
    taken = images.train_labels[some_of_each(images.train_labels, 110)]
    assert np.bincount(taken).tolist() == [10] * 11


def timed_run(
    seconds: float, ranks: int, sizes: list[int], evaluates: float = 0, reads: float = 0
) -> ObservedRun:
    """Return a run of two epochs in which each step takes so long.

    Between them it evaluates for some seconds, and then reads before the first step.
    """
    results = []
    for rank in range(ranks):
        evidence = []
        for step, size in enumerate(sizes * 2):
            begin = step * seconds + (evaluates + reads if step >= len(sizes) else 0)
            batch = {"time": begin, "size": size, "images": []}
            evidence.append({"note": "batch", "value": batch})
            evidence.append({"note": "step", "value": begin + seconds})
        answered = {"time": len(sizes) * seconds + evaluates, "images": [], "classes": []}
        evidence.append({"note": "answers", "value": answered})
        results.append(RankResult(rank, 0, evidence=evidence))
    result = RunResult("", ranks, "ended", 1, 1, results, [])
    return ObservedRun(result, {"epochs": 2})


def test_images_that_are_seen_twice_do_not_count_for_the_throughput():
    gallery = Gallery((), 40, np.empty(0), np.empty(0), np.empty(0))
    assert images_per_second(timed_run(0.5, 2, [10, 10]), gallery) == pytest.approx(40)
    assert images_per_second(timed_run(0.5, 2, [10, 10, 10, 10]), gallery) == pytest.approx(20)


def test_reading_before_the_first_step_counts_for_the_throughput_and_evaluating_does_not():
    gallery = Gallery((), 40, np.empty(0), np.empty(0), np.empty(0))
    evaluating = timed_run(0.5, 2, [10, 10], evaluates=3)
    assert images_per_second(evaluating, gallery) == pytest.approx(40)
    reading = timed_run(0.5, 2, [10, 10], evaluates=3, reads=1)
    assert images_per_second(reading, gallery) == pytest.approx(20)


PIXELS = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 3))
LARGE = Gallery(("ann", "ben"), 256, np.empty(0), all_views(PIXELS), np.array([0, 0, 0, 0, 1, 1]))


def large_run(steps: int = 2, sent: int = 400, answers: tuple[int, ...] = (0, 0, 0, 0, 1, 0)):
    """Return evidence of a large run of two epochs, with a gradient of 400 bytes."""
    evidence = [{"note": "bytes", "value": 400}, {"collective": "allreduce", "bytes": sent}]
    evidence += [{"note": "step", "value": number} for number in range(steps)]
    note = {"images": thumbnails(PIXELS).tolist(), "classes": answers}
    evidence.append({"note": "answers", "value": note})
    result = RunResult("", 1, "ended", 1, 1, [RankResult(0, 0, evidence=evidence)], [])
    return Evidence({"large": ObservedRun(result, {"epochs": 2})}, {"large": LARGE})


def accuracy_of(evidence: Evidence) -> PartScore:
    return score_of(next(part for part in PARTS if part.name == "accuracy"), evidence)


def test_the_accuracy_is_the_mean_over_the_painters():
    score = accuracy_of(large_run())
    assert score.points == pytest.approx(20 * (0.75 - 0.5) / 0.4)
    assert "mean of the painters 0.750; of all test images 0.833 are right" in score.words


def test_what_was_not_evaluated_is_not_right():
    evidence = large_run()
    others = np.random.default_rng(1).integers(0, 256, PIXELS.shape)
    evidence.galleries["large"] = replace(LARGE, test_views=all_views(others))
    assert accuracy_of(evidence).points == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"steps": 3}, "at most 2 steps in 2 epochs"), ({"sent": 16}, "average their gradients")],
)
def test_a_small_batch_or_ranks_by_themselves_have_no_points_for_accuracy(wrong, said):
    score = accuracy_of(large_run(**wrong))
    assert score.points == 0
    assert said in score.words


def test_no_evidence_has_no_points():
    for part in PARTS:
        score = score_of(part, Evidence(failures={"four": "on 4 ranks: it crashed"}))
        assert score.points == 0
        assert "ends well" in score.words


def test_a_measure_is_worth_its_share_of_the_points():
    assert [
        in_proportion(measure, (0.5, 0.9), "")[0] for measure in (0.2, 0.7, 0.95)
    ] == pytest.approx([0, 0.5, 1])


def test_what_fails_several_parts_is_told_once():
    parts = [PartScore(name, name, 0, 5, "rank 1 crashed") for name in ("runs", "shares")]
    console = Console(file=io.StringIO(), width=80)
    console.print(Score("artists_resnet.py", parts, 1.0))
    shown = console.file.getvalue()
    assert shown.count("rank 1 crashed") == shown.count("see runs") == 1


@pytest.mark.parametrize(
    ("reported", "told"),
    [
        ({"one": [1, 2, 3], "two": [2, 2, 2]}, "named] of two; it is [1, 2, 2]"),
        ({"one": [1, 2, 3]}, "there are the painters one, two"),
        (0.5, "reports 0.5, and there are"),
    ],
)
def test_a_wrong_report_is_told_by_the_first_painter_that_differs(reported, told):
    counts = {"one": [1, 2, 3], "two": [1, 2, 2]}
    assert told in first_difference(reported, counts)


def test_the_points_add_up_to_100():
    assert sum(part.points for part in PARTS) == 100


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: None, r"no script 'artists_resnet\.py'"),
        (lambda folder: (folder / "artists_resnet.py").write_text("def"), r"line 1: "),
    ],
)
def test_a_program_that_cannot_be_judged_is_named(make, said, tmp_path, images):
    make(tmp_path)
    with pytest.raises(BadInput, match=said):
        challenge(tmp_path, data=tmp_path)


def test_a_gallery_that_cannot_be_judged_is_named(tmp_path):
    with pytest.raises(BadInput, match="is no folder"):
        challenge(SOLUTIONS, data=tmp_path / "nowhere")
    draw_pictures(tmp_path / "few", 0.01)
    with pytest.raises(BadInput, match="131 images to train and 55 to test are the least"):
        challenge(SOLUTIONS, data=tmp_path / "few")


def test_an_image_that_cannot_be_read_is_named(tmp_path):
    for part, count in (("train", 131), ("test", 55)):
        folder = tmp_path / part / "anna"
        folder.mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number}.png")
    (tmp_path / "test" / "anna" / "7.png").write_bytes(b"no image")
    with pytest.raises(BadInput, match=r"7\.png"):
        challenge(SOLUTIONS, data=tmp_path)


@pytest.mark.parametrize(
    ("statuses", "killed"),
    [((-9, -9), True), ((-9, 1), True), ((-9, None), True), ((-9, 0), False), ((1, 1), False)],
)
def test_a_rank_that_fails_because_its_peer_was_killed_is_no_fault(statuses, killed):
    ranks = [RankResult(number, status) for number, status in enumerate(statuses)]
    result = RunResult("", 2, "failed", 1, 1, ranks, [])
    assert was_killed(result) is killed


def test_reset_puts_the_program_back_as_it_came(hvdcourse, project, tmp_path):
    script = project / "source_code" / "artists_resnet.py"
    script.write_text("# mine\n")
    done = hvdcourse("reset", "artists_resnet", HVDCOURSE_STATE=str(tmp_path / "state"))
    assert done.returncode == 0, done.stderr
    assert script.read_text() == UNTOUCHED.read_text()
    assert [path.read_text() for path in (tmp_path / "state").glob("*.py")] == ["# mine\n"]
