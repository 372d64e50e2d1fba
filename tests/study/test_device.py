"""One device and its pipelines: what is measured, and what is told of each pipeline."""

import re

import numpy as np
import tensorflow as tf

from hvdcourse.study.device import compare_overlap, measure_pipelines, time_batches, time_workers
from hvdcourse.training.feeding import timed


def samples():
    paths = {"path": [f"{n}.png" for n in range(8)], "label": [0] * 4 + [1] * 4}
    return tf.data.Dataset.from_tensor_slices(paths)


@timed("decoded")
def decode(sample):
    return {**sample, "image": tf.zeros((2, 2, 1), tf.uint8)}


@timed("shifted")
def shift(sample):
    return {**sample}


def test_each_batch_size_is_timed_in_each_turn():
    seen = []

    def train_step(images, labels):
        seen.append(len(images))
        return tf.reduce_sum(tf.cast(labels, tf.float32))

    times = time_batches(train_step, np.zeros((3, 2, 2, 1)), np.zeros(3), [1, 64], turns=2)
    assert {size: len(of_size) for size, of_size in times.items()} == {1: 2, 64: 2}
    assert seen.count(64) == 1 + 2, "more images than there are; one call builds the graph"
    assert seen.count(1) == 1 + 2 * 32


def test_the_median_epoch_of_both_kinds_is_returned_and_told_beside_its_formula(capsys):
    plain = samples().map(decode).map(shift).batch(2)
    chosen = compare_overlap(plain, plain.prefetch(2), lambda batch: None, 2, turns=3)
    told = capsys.readouterr().out
    assert {name: epoch.count for name, epoch in chosen.items()} == {"in turn": 8, "overlapped": 8}
    assert re.search(r"in turn +formula [\d.]+ s, measured [\d.]+ s\noverlapped +formula", told)


def test_what_a_pipeline_repeats_is_told(capsys):
    pipelines = {
        "plain": samples().map(decode).map(shift).batch(4),
        "frozen": samples().shuffle(8).map(decode).map(shift).cache().batch(8),
        "in another order": samples().map(decode).cache().shuffle(8, seed=1).map(shift).batch(8),
    }
    epochs = measure_pipelines(pipelines, lambda batch: None, turns=4)
    assert {name: len(later) for name, later in epochs.items()} == dict.fromkeys(pipelines, 3)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[-4:] for row in rows] == [
        ["100%", "100%", "no", "1"],
        ["0%", "0%", "no", "2"],
        ["0%", "100%", "yes", "2"],
    ]


class Batches(tf.keras.utils.Sequence):
    def __init__(self):
        self.taken = []

    def __len__(self):
        return 3

    def __getitem__(self, number):
        self.taken.append(number)
        return np.zeros(2), np.zeros(2)


def test_an_epoch_of_all_batches_is_timed_for_each_number_of_workers():
    batches = Batches()
    taken = time_workers(batches, [1, 2], step_seconds=0, turns=2)
    assert {workers: len(seconds) for workers, seconds in taken.items()} == {1: 2, 2: 2}
    assert all(batches.taken.count(number) >= 4 for number in range(3))
