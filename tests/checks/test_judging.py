"""What checks conclude from evidence that is made up: mistakes that would each cost a run."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from judging import observed, told

from hvdcourse.checks.check import judge_runs
from hvdcourse.checks.evidence import NotJudged, ObservedRun, Unmet, percent
from hvdcourse.checks.exercise import Trial
from hvdcourse.checks.exercises import (
    cifar,
    elastic,
    fashion_mnist,
    input_pipeline,
    learning_rate,
    mpi_concepts,
    ring_allreduce,
    shares,
    training,
)
from hvdcourse.checks.hints import hints_for
from hvdcourse.checks.manifest import find_exercise
from hvdcourse.launch.result import RankResult, RunResult
from hvdcourse.launch.stacks import Position
from hvdcourse.rank.fingerprints import fingerprints


def ended(trial: Trial, reason: str = "ended") -> RunResult:
    """Return the result of a run whose ranks left nothing, and ended well or for this reason."""
    status = 0 if reason == "ended" else None
    ranks = [RankResult(rank, status) for rank in range(trial.np)]
    return RunResult("", trial.np, reason, 1, 0, ranks, [])


def judged(exercise: str, start, monkeypatch, tmp_path, checks=None):
    """Judge an exercise whose runs are what ``start`` makes of a trial; return what came of it.

    Every step is met, less those of ``checks``, by their numbers.
    """
    monkeypatch.setitem(judge_runs.__globals__, "start", lambda _, trial, *rest: start(trial))
    found = find_exercise(exercise)
    checks = dict.fromkeys(range(1, len(found.steps) + 1), lambda run: None) | (checks or {})
    steps = [replace(step, check=checks[step.number]) for step in found.steps]
    return judge_runs(found, list(found.trials(tmp_path)), steps, tmp_path, 55)


@pytest.mark.parametrize("before", [[], ["ended"]])
def test_a_run_that_others_left_no_time_says_so(before, monkeypatch, tmp_path):
    reasons = itertools.chain(before, itertools.repeat("time limit"))
    _, failures = judged(
        "mpi_concepts", lambda trial: ended(trial, next(reasons)), monkeypatch, tmp_path
    )
    told = "The runs before it took 0 of the check's 55 s." in failures[1]
    assert told == bool(before)


def test_a_run_is_not_started_where_earlier_ones_have_shown_all_its_steps(monkeypatch, tmp_path):
    def wrong(run: ObservedRun) -> None:
        raise Unmet("all is right", ["rank 0: is wrong"])

    def start(trial: Trial) -> RunResult:
        started.append(trial.ranks_in_words)
        return ended(trial)

    # The second run is needed for steps 1, 2, 6 and 7, the third for all.
    started: list[str] = []
    checks = dict.fromkeys((1, 2, 6, 7), wrong)
    unmet, failures = judged("mpi_concepts", start, monkeypatch, tmp_path, checks)
    assert started == ["3 ranks on 2 hosts (2 + 1)", "1 rank"]
    assert (list(unmet), failures) == ([1, 2, 6, 7], {})

    started.clear()
    checks = dict.fromkeys((1, 2, 3, 4), wrong)
    unmet, _ = judged("ring_allreduce", start, monkeypatch, tmp_path, checks)
    assert started == ["2 ranks"]
    # There would have been others, so it says which this was.
    assert unmet[1].seen == ["on 2 ranks:", "rank 0: is wrong"]


def test_a_run_that_breaks_fails_only_the_steps_that_need_it(monkeypatch, tmp_path):
    def start(trial: Trial) -> RunResult:
        return ended(trial, "failed" if "resumed" in trial.about else "ended")

    unmet, failures = judged("fashion_mnist", start, monkeypatch, tmp_path)
    assert (unmet, list(failures)) == ({}, [4, 7])
    assert "On 3 ranks on 2 hosts (2 + 1), resumed from a checkpoint, the script" in failures[7]


# Of two ranks on one host, and one on another.
GPUS = {
    "its own": ([0], [1], [0], ""),
    "that of its rank": ([0], [1], [2], "rank 2: rank 2 of 3, with local rank 0, sees GPU 2"),
    "the first": ([0], [0], [0], "rank 1: rank 1 of 3, with local rank 1, sees GPU 0"),
    "none": ([], [], [], "rank 1: rank 1 of 3, with local rank 1, sees no GPU"),
    "all": ([0, 1], [0, 1], [0], "rank 1: rank 1 of 3, with local rank 1, sees GPUs 0, 1"),
    "one alone": ([0], [0, 1], [0], "rank 1: rank 1 of 3, with local rank 1, sees GPUs 0, 1"),
}


@pytest.mark.parametrize("which", GPUS)
def test_a_rank_sees_the_gpu_of_its_local_rank_and_no_other(which):
    *gpus, said = GPUS[which]
    places = [
        {"rank": rank, "size": 3, "local_rank": rank % 2, "gpus": numbers}
        for rank, numbers in enumerate(gpus)
    ]
    run = observed(*([{"note": "place", "value": place}] for place in places), hosts=(2, 1))
    assert said in told(training.check_place, run)
    assert bool(said) == bool(told(training.check_place, run))


STEPS = 3  # an epoch
EPOCHS, KILLED_AFTER = fashion_mnist.EPOCHS, fashion_mnist.KILLED_AFTER


def gradient(rank: int, step: int, weights: np.ndarray) -> np.ndarray:
    """Return the gradient of this rank's samples in a step."""
    generator = np.random.default_rng([rank, step])
    return generator.uniform(0.5, 1.5, 10) * weights - generator.normal(size=10)


def trained(weights, momenta, begins=(0, 0), *, averaged=True) -> tuple[ObservedRun, list]:
    """Train two ranks by hand; return what is observed, and (weights, momentum) as if killed."""
    weights, momenta = np.array(weights), np.array(momenta)
    evidence, killed = ([], []), None
    for step in range(min(begins) * STEPS, EPOCHS * STEPS):
        if step == KILLED_AFTER * STEPS:
            killed = [weights[0].copy(), momenta[0].copy()]
        awake = [rank for rank in (0, 1) if step >= begins[rank] * STEPS]
        own = {rank: gradient(rank, step, weights[rank]) for rank in awake}
        for rank in awake:
            used = np.mean(list(own.values()), axis=0) if averaged else own[rank]
            note = {"weights": fingerprints([weights[rank]]), "gradient": fingerprints([used])}
            evidence[rank].append({"note": "update", "value": note})
            momenta[rank] = 0.9 * momenta[rank] + used
            weights[rank] -= 0.02 * momenta[rank]
    for rank in (0, 1):
        end = {"weights": fingerprints([weights[rank]])}
        evidence[rank].append({"note": "end", "value": end})
    return observed(*evidence), killed


FIRST = np.random.default_rng(1).normal(size=10)
ZERO = np.zeros(10)
WHOLE, (SAVED, MOMENTUM) = trained([FIRST, FIRST], [ZERO, ZERO])
GO_ON = (KILLED_AFTER, KILLED_AFTER)
WEIGHTS = "has the weights of the killed one"
END = "ends with the weights of a run that was never killed"
# What both ranks of a resumed run begin with, and what is said of it.
RESUMED = {
    "right": ([SAVED, SAVED], [MOMENTUM, MOMENTUM], GO_ON, True, ""),
    "no broadcast of the weights": ([SAVED, FIRST], [MOMENTUM, MOMENTUM], GO_ON, True, WEIGHTS),
    "no broadcast of the state": ([SAVED, SAVED], [MOMENTUM, ZERO], GO_ON, True, END),
    "no broadcast of the epoch": (
        [SAVED, SAVED], [MOMENTUM, MOMENTUM], (KILLED_AFTER, 0), True,
        f"rank 1: made {EPOCHS} more epochs",
    ),
    "epochs from the first on": (
        [SAVED, SAVED], [MOMENTUM, MOMENTUM], (0, 0), True, f"rank 0: made {EPOCHS} more epochs"
    ),
    "state not loaded": ([SAVED, SAVED], [ZERO, ZERO], GO_ON, True, END),
    "nothing loaded": ([FIRST, FIRST], [ZERO, ZERO], GO_ON, True, WEIGHTS),
    "unwrapped": ([SAVED, SAVED], [MOMENTUM, MOMENTUM], GO_ON, False, END),
}  # fmt: skip


@pytest.mark.parametrize("how", RESUMED)
def test_a_resumed_run_goes_on_as_if_never_killed(how):
    weights, momenta, begins, averaged, said = RESUMED[how]
    run, _ = trained(weights, momenta, begins, averaged=averaged)
    text = told(fashion_mnist.check_resumed, run, WHOLE)
    assert said in text
    assert bool(said) == bool(text)


@pytest.mark.parametrize(
    ("steps", "said"),
    [(4, ""), (5, ""), (9, "makes 9 steps, of 7.5 images"), (3, "makes 3 steps, of 22.5 images")],
)
def test_steps_fall_by_the_number_of_ranks(steps, said):
    run = observed([], [], images=135, batch_size=16)
    text = told(shares.check_fewer_steps, run, steps=steps)
    assert said in text
    assert bool(said) == bool(text)


@pytest.mark.parametrize("more", [1e-4, 1e-2])
def test_a_mean_of_means_is_told_even_where_by_chance_it_is_near(more):
    shares_of_ranks = [np.array([2.0, 2.0]), np.array([2.0 + more])]
    for value, said in ((2 + more / 2, "ignores that shares differ"), (2 + more / 3, "")):
        run = observed(*([{"report": "loss", "value": value}] for _ in shares_of_ranks))
        text = told(shares.check_metric, run, report="loss", name="loss", by_share=shares_of_ranks)
        assert said in text
        assert bool(said) == bool(text)


def messages(*sent: tuple[int, int]) -> list[dict]:
    """Return evidence of a rank that sent so many bytes to these ranks, in one of two phases."""
    bounds = {"report": "bounds", "value": [[0, 3], [3, 6], [6, 9]]}
    sends = [{"message": "Send", "bytes": size, "to": to} for to, size in sent]
    return [bounds, *sends, {"report": "scattered", "value": []}]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ([(1, 24), (1, 24)], ""),
        ([], "rank 0: sent 0 bytes in 0 messages, and called no collective"),
        ([(1, 24)], "rank 0: sent 24 bytes in 1 message,"),
        ([(1, 72)], "rank 0: sent 72 bytes in 1 message,"),
        ([(1, 24), (2, 24)], "sent 48 bytes in 2 messages, some to rank 2, and called"),
    ],
)
def test_a_ring_sends_all_chunks_but_one_to_its_neighbor(sent, said):
    right = [messages((rank, 24), (rank, 24)) for rank in (2, 0)]
    run = observed(messages(*sent), *right, lengths="9")
    text = told(ring_allreduce.check_traffic, run, since="bounds", before="scattered")
    assert said in text
    assert bool(said) == bool(text)


@pytest.mark.parametrize(("off", "said"), [(0, ""), (0.002, "scores of another mean or direction")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_another_mean_are_told_even_where_by_chance_they_are_near(off, said, dtype):
    images = mpi_concepts.images_of_ranks(observed([], images=300))[0]
    mean, direction = images.mean(axis=0), np.random.default_rng(0).normal(size=64)
    scores = (images.astype(dtype) - mean.astype(dtype)) @ direction.astype(dtype) + off
    reports = {"rows": np.arange(300), "mean": mean, "direction": direction}
    reports |= {"scores": scores, "all_scores": scores}
    run = observed([{"report": name, "value": of} for name, of in reports.items()], images=300)
    seen = told(mpi_concepts.check_gather, run)
    assert said in seen if said else not seen


@pytest.mark.parametrize("length", ring_allreduce.SHORT_LENGTHS)
def test_every_length_that_is_drawn_tells_chunks_that_are_not_equal(length):
    starts = np.arange(5)
    rest_last = [*(starts * (length // 5)), length]
    rounded_up = [*np.minimum(starts * -(-length // 5), length), length]
    in_floating_point = [int(k * (length / 7)) for k in range(8)]
    for cuts in (rest_last, rounded_up, in_floating_point):
        bounds = np.stack([cuts[:-1], cuts[1:]], axis=1)
        assert not ring_allreduce.are_equal_chunks(bounds, len(bounds), length)


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0123, "1.2 %"), (0.5, "50 %"), (1.234, "123 %"), (0.0004, "0.04 %"), (5.2e-8, "0 %")],
)
def test_a_share_is_told_in_percent(share, said):
    assert percent(share) == said


def epochs(seconds: float, ready: bool) -> list[dict]:
    """Return five epochs of two batches, fed in so many seconds."""
    first, second = [[0, 0.1]] * 8, [[0, 0.1 if ready else seconds]] * 8
    epoch = {"asked": [0, 0], "ended": [seconds / 2, seconds]}
    return [{**epoch, "samples": {"shifted": [first, second]}}] * 5


def fed_in(seconds: float, ready: bool) -> ObservedRun:
    """Return a run whose plain pipeline took 2 seconds for an epoch."""
    reports = {"plain": epochs(2, False), "pipeline": epochs(seconds, ready)}
    return observed([{"report": name, "value": value} for name, value in reports.items()], epochs=5)


@pytest.mark.parametrize(("ready", "said"), [(True, ""), (False, "0 % of the batches were ready")])
def test_batches_are_made_ahead(ready, said):
    text = told(input_pipeline.check_ahead, fed_in(1, ready))
    assert said in text
    assert bool(said) == bool(text)


@pytest.mark.parametrize(("seconds", "said"), [(1, ""), (1.1, "15 images/s, 1.8 times as many")])
def test_images_come_faster_than_through_the_plain_pipeline(seconds, said):
    text = told(input_pipeline.demand_speed, fed_in(seconds, True))
    assert said in text
    assert bool(said) == bool(text)


@pytest.mark.parametrize("factor", [1, 2, 3**0.5, 3, 9])
def test_no_multiple_of_one_of_cifars_rates_is_taken_for_the_other_one_scaled(factor):
    for _ in range(200):
        drawn = cifar.arguments()
        for one, other in itertools.permutations(
            (drawn["learning_rate"], drawn["lamb_learning_rate"])
        ):
            assert not learning_rate.is_any_of(factor * one, [other, 3 * other]), drawn


def epoch_of_worker(rank: int, number: int, size: int) -> dict:
    """Return what a worker of an elastic job tells of an epoch."""
    epoch = {"epoch": number, "size": size, "rank": rank, "pid": rank, "time": float(number)}
    return {"report": "epoch", "value": epoch}


def test_an_epoch_at_whose_end_rank_0_was_killed_is_told_of_by_the_others():
    evidence = [epoch_of_worker(rank, number, 2) for number in (1, 2, 3) for rank in (0, 1)]
    del evidence[-2]
    killed = {"report": "killed", "value": {"ranks": [0], "pids": [0], "time": 2.5}}
    evidence += [killed, epoch_of_worker(0, 4, 1), epoch_of_worker(0, 5, 1)]
    run = ObservedRun(RunResult("", 1, "", 60, 0, [RankResult(0, evidence=evidence)], []), {})
    said = elastic.Job(run).in_words()
    assert said == "epochs 1 to 3: 2 workers, then epochs 4 to 5: 1 worker"


def test_an_elastic_job_that_stands_still_after_a_host_was_added_is_told_as_such():
    evidence = [epoch_of_worker(rank, number, 2) for number in (1, 2, 3) for rank in (0, 1)]
    killed = {"ranks": [0], "pids": [0], "time": 3.5}
    evidence += [{"report": "killed", "value": killed}, epoch_of_worker(0, 4, 1)]
    evidence[-1]["value"]["pid"] = 1  # who is left becomes rank 0
    evidence += [{"report": "added", "value": {"host": "127.1", "time": 4.5}}]
    position = Position("elastic_driver.py", 88, "subprocess.run(…)", None)
    driver = RankResult(0, position=position, evidence=evidence)
    result = RunResult("horovodrun", 1, "time limit", 60, 0, [driver], [], elastic=True)
    run = ObservedRun(result, {}, hosts=elastic.HOSTS, disturbed=True)
    said = told(elastic.check_survives, run)
    assert "does the script call a collective before train" in said
    assert "TensorFlowState" in hints_for("elastic", 1, said).question
    assert "epochs 1 to 3: 2 workers, then epoch 4: 1 worker" in said
    assert "elastic_driver.py" not in said
    with pytest.raises(NotJudged) as judged:
        elastic.check_state(run)
    assert elastic.ABOUT_SURVIVAL in judged.value.seen


def elastic_job(rate: float, accuracy: float) -> ObservedRun:
    """Return a job of two workers of which one is killed, and gets another one beside it."""

    def told_of(rank: int, number: int, size: int, pid: int) -> dict:
        epoch = epoch_of_worker(rank, number, size)
        images = np.arange(4)[rank::size]
        more = {"pid": pid, "images": images, "learning_rate": rate * size}
        more |= {"weights": [[1.0, 1.0]], "optimizer_variables": [[2.0, 2.0]]}
        epoch["value"] |= {**more, "test_accuracy": accuracy}
        return epoch

    killed = {"report": "killed", "value": {"ranks": [0], "pids": [0], "time": 1.5}}
    evidence = [told_of(0, 1, 2, 0), told_of(1, 1, 2, 1), killed, told_of(0, 2, 1, 1)]
    evidence += [told_of(0, 3, 2, 1), told_of(1, 3, 2, 2)]
    usual = observed([told_of(0, 3, 2, 0) | {"value": {"rank": 0, "test_accuracy": 0.9}}])
    result = RunResult("", 1, "ended", 1, 1, [RankResult(0, 0, evidence=evidence)], [])
    return ObservedRun(result, {"images": 4}, [usual], hosts=elastic.HOSTS, disturbed=True)


@pytest.mark.parametrize(
    ("rate", "accuracy", "said"),
    [
        (elastic.LEARNING_RATE, 0.9, ""),
        (elastic.LEARNING_RATE, 0.7, "median of the last 5 epochs: 0.700"),
        # What costs accuracy may be a later step, which is still to do.
        (2 * elastic.LEARNING_RATE, 0.7, ""),
    ],
)
def test_an_elastic_jobs_accuracy_is_judged_once_rate_and_shares_are_right(rate, accuracy, said):
    text = told(elastic.check_state, elastic_job(rate, accuracy))
    assert said in text if said else not text
