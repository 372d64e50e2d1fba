"""Pipelines that are not right, and what the check of ``input_pipeline.py`` says of them."""

import time
from pathlib import Path

import numpy as np
import pytest
from verdicts import changed, verdict_on

from hvdcourse.checks.evidence import ObservedRun, Unmet
from hvdcourse.checks.exercises.input_pipeline import batches_ahead
from hvdcourse.checks.manifest import find_exercise
from hvdcourse.data.digit_files import write_digits
from hvdcourse.plots.runs import lanes
from hvdcourse.training.fed_epoch import FedEpoch
from hvdcourse.training.feeding import feed, timed

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(240)]

NAME = "input_pipeline"
SHIFT = "    dataset = dataset.map(shift)\n"
SHUFFLED = "shuffle(len(files.train_paths)"
END = "    return dataset\n\n\ndef main"
KEEPS_EVERYTHING = """    kept = []

    class Keeper:
        def __iter__(self):
            for batch in dataset:
                kept.append(batch)
                yield batch

    return Keeper()


def main"""
SLOW = """
    def wait(image):
        began = time.perf_counter()
        while time.perf_counter() < began + 0.01:  # Asleep, the run would seem to stand still.
            pass
        return image

    def waited_for(sample):
        return {**sample, "image": tf.py_function(wait, [sample["image"]], tf.uint8)}

    dataset = dataset.map(waited_for)
"""
WRONG_LABELS = """    def wrong(sample):
        return {**sample, "label": (sample["label"] + 1) % 10}

    return dataset.map(wrong)


def main"""


# Each of different steps, which share a run.
WRONG = (
    # Whatever it hands out it keeps, and it never ends.
    (
        [(END, KEEPS_EVERYTHING.replace("in dataset", "in dataset.repeat()"))],
        {3: "memory grew by", 5: "0 missing"},
    ),
    (
        [('"memory": True', '"memory": False'), (END, WRONG_LABELS)],
        {3: "memory grew by 0 MB", 5: "twice or with a wrong label or image"},
    ),
    # The cache is there, and then every image is waited for.
    (
        [(SHIFT, SHIFT + SLOW), (SHUFFLED, f"{SHUFFLED}, reshuffle_each_iteration=False")],
        {2: "correlation between two epochs: 1", 3: "times as many as through plain_pipeline"},
    ),
)


@pytest.mark.parametrize(("changes", "said"), WRONG)
def test_a_wrong_pipeline_fails_these_steps_and_is_told_why(changes, said):
    verdict = verdict_on(NAME, changed(NAME, *changes))
    assert verdict.failure is None
    assert verdict.first_unmet.number == min(said)
    told = {step.number: step.told for step in verdict.steps}
    for step, words in said.items():
        assert words in told[step]
    # Of one order for all epochs nothing is said of the buffer.
    assert "buffer" not in told[2]


def test_a_pipeline_that_never_delivers_ends_in_a_verdict():
    verdict = verdict_on(NAME, changed(NAME, (END, "    return dataset.take(0)\n\n\ndef main")))
    assert not any(step.passed for step in verdict.steps)
    assert "images arrive in each of" in verdict.first_unmet.expected


class NoReports:
    """A result whose only rank reported nothing."""

    def __init__(self):
        self.np, self.ranks = 1, [self]
        self.rank, self.evidence, self.output = 0, [], ""


@pytest.mark.parametrize("step", find_exercise(NAME).steps, ids=lambda step: step.number)
def test_no_evidence_is_a_failure(step):
    with pytest.raises(Unmet, match="every rank reports"):
        step.check(ObservedRun(NoReports(), {"images": 120, "epochs": 5}))


def test_timed_notes_when_a_function_began_and_ended():
    def work(sample):
        time.sleep(0.05)
        return {"image": sample["image"] + 1}

    import tensorflow as tf

    before = time.time()
    sample = timed("worked")(work)({"image": tf.constant([1])})
    began, ended = sample["worked"].numpy()
    assert before <= began <= ended - 0.05
    assert ended <= time.time()
    assert sample["image"].numpy() == [2]


def test_feed_counts_times_and_stops_where_it_is_told_to():
    import tensorflow as tf

    def step(batch):
        time.sleep(0.05)
        return int(tf.reduce_sum(batch["image"]))

    dataset = tf.data.Dataset.from_tensor_slices({"image": [1, 2, 3], "name": ["a", "b", "c"]})
    (epoch,) = feed(dataset.batch(2), 1, step)
    assert epoch.samples == {"name": [["a", "b"], ["c"]]}
    assert epoch.results == [3, 3]
    assert epoch.count == 3
    assert 0.1 <= epoch.seconds == pytest.approx(3 / epoch.images_per_second)
    assert 0.1 <= epoch.busy * epoch.seconds < epoch.seconds
    endless = feed(dataset.batch(2).repeat(), 2, step, most_steps=3, memory=True)
    assert [len(epoch.ended) for epoch in endless] == [3, 3]
    assert all(epoch.resident_bytes > 1e7 for epoch in endless)


def test_only_a_whole_batch_tells_whether_it_was_made_ahead():
    """Threads may shift the few images of the last one at a time, without anything made ahead."""
    shifted = [[[0, 1]] * 20, [[2, 3]] * 20, [[4, 7]] * 20, [[7, 8]] * 3]
    epoch = FedEpoch(ended=[4.0, 6.0, 9.0, 10.0], samples={"shifted": shifted})
    assert batches_ahead(epoch) == [(True, True), (True, False)]
    alone = FedEpoch(ended=[4.0], samples={"shifted": shifted[:1]})
    assert batches_ahead(alone) == []


def test_an_epoch_without_a_batch_has_no_speed():
    epoch = FedEpoch()
    assert (epoch.count, epoch.seconds, epoch.images_per_second, epoch.busy) == (0, 0, 0, 0)


def test_overlapping_work_gets_lanes_of_its_own():
    intervals = np.array([[0.0, 2.0], [1.0, 3.0], [2.0, 4.0], [2.5, 2.6], [3.0, 5.0]])
    assert lanes(intervals) == [0, 1, 0, 2, 1]
    assert lanes(np.empty((0, 2))) == []


def test_digit_files_lie_in_class_folders_and_can_be_read(tmp_path: Path):
    from hvdcourse import load

    files = write_digits(tmp_path, train=40, test=25, pixels=24)
    assert (len(files.train_paths), len(files.test_paths)) == (40, 25)
    assert all(
        path.parent.name == str(label)
        for path, label in zip(files.train_paths, files.train_labels, strict=True)
    )
    data = load(tmp_path)
    assert data.train_images.shape == (40, 24, 24, 3)
