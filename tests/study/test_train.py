"""What a study's run trains and tests on, without other ranks."""

import functools
import gc
import re
import weakref
from dataclasses import fields, replace

import numpy as np
import pytest
import tensorflow as tf

from hvdcourse.data.sets import DataSet, load
from hvdcourse.data.shards import shard
from hvdcourse.errors import BadInput
from hvdcourse.study import networks as study_network
from hvdcourse.study import train as study_training
from hvdcourse.study.callbacks import MeasureEpochs
from hvdcourse.study.condition import Condition
from hvdcourse.study.networks import (
    NOT_IN_GRAPH,
    build_model,
    compiled,
    network_for,
    network_key,
)
from hvdcourse.study.train import part_of, train

pytestmark = pytest.mark.ranks


def test_the_whole_test_set_is_judged_exactly_by_ranks_of_unequal_shares(monkeypatch):
    random = np.random.default_rng(0)
    images = random.normal(size=(10, 4)).astype(np.float32)
    labels = random.integers(0, 3, 10)
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, input_shape=(4,))])
    sums = []

    def note(measure, values):
        sums.append(values)
        return values

    monkeypatch.setattr(MeasureEpochs, "mean_of_ranks", note)

    def test_of(mine):
        # Batches of two, so that the last one of a share is not full.
        measure = MeasureEpochs((images[mine], labels[mine]), 10, 3, 2, print)
        measure.set_model(model)
        return measure.test()

    for rank in range(3):
        test_of(shard(10, rank, 3))
    mean = np.mean(sums, axis=0)
    monkeypatch.setattr(MeasureEpochs, "mean_of_ranks", lambda self, values: list(mean))
    together = test_of(slice(0, 4))
    model.compile(
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
    )
    assert together == pytest.approx(model.evaluate(images, labels, verbose=0), rel=1e-6)
    assert sums[0][2] != sums[1][2]


def test_held_out_images_are_tested_on_and_not_trained_on():
    digits = load("digits")
    part = part_of(digits, Condition(hold_out=100, images=500))
    np.testing.assert_array_equal(part.train_images, digits.train_images[:500])
    np.testing.assert_array_equal(part.test_images, digits.train_images[-100:])
    np.testing.assert_array_equal(part.test_labels, digits.train_labels[-100:])
    assert len(part_of(digits, Condition(hold_out=100)).train_images) == 1337
    np.testing.assert_array_equal(part_of(digits, Condition()).test_images, digits.test_images)


def test_of_a_folder_all_classes_are_held_out_though_they_come_one_by_one():
    labels = np.repeat(np.arange(4), 25)
    images = np.arange(100, dtype=np.uint8).reshape(-1, 1, 1, 1)
    folder = DataSet(images, labels, images[:0], labels[:0], tuple("abcd"), "")
    part = part_of(folder, Condition(data="/a/folder", hold_out=40))
    assert set(part.test_labels) == set(part.train_labels) == {0, 1, 2, 3}
    assert sorted([*part.train_images.ravel(), *part.test_images.ravel()]) == list(range(100))


def test_more_images_than_there_are_is_refused():
    with pytest.raises(BadInput, match="images=5000, but there are 1437"):
        part_of(load("digits"), Condition(images=5000))


SHORT = Condition(images=64, epochs=2, width=1, learning_rate=0.5, batch_norm="local")


@pytest.mark.parametrize("optimizer", ["lamb", "novograd"])
def test_a_run_is_the_same_whatever_was_trained_before_it(optimizer):
    condition = replace(SHORT, optimizer=optimizer)

    def figures(condition, seed):
        found, model = train(condition, seed, load("digits"), lambda row: None)
        return model, [(row["loss"], row["test_loss"]) for row in found["epochs"]]

    first, alone = figures(condition, 0)
    other, _ = figures(replace(condition, learning_rate=0.1, batch_size=16), 1)
    again, after_another = figures(condition, 0)
    assert other is first is again
    assert after_another == alone
    study_network._BUILT.clear()
    anew, fresh = figures(condition, 0)
    assert anew is not first
    assert fresh == alone


def test_trust_ratios_are_recorded_unless_they_are_not_wanted():
    condition = replace(SHORT, optimizer="lamb")
    for kept in (True, False):
        asked = replace(condition, keep_trust_ratios=kept)
        found, _ = train(asked, 0, load("digits"), lambda row: None)
        assert ("trust_ratios" in found) is kept


FIELDS = {field.name for field in fields(Condition)}
OTHER_SETTINGS = {
    "data": "mnist",
    "images": 32,
    "hold_out": 10,
    "model": "wide_resnet",
    "width": 2,
    "blocks": 2,
    "layer_norm": "pre",
    "batch_norm": "none",
    "ghost_batches": 2,
    "batch_norm_momentum": 0.5,
    "optimizer": "lamb",
    "learning_rate": 0.1,
    "scaling": "linear",
    "base_batch_size": 16,
    "warmup_epochs": 1,
    "schedule": "step",
    "weight_decay": 0.1,
    "ranks": 3,
    "batch_size": 16,
    "epochs": 3,
    "target": 0.5,
    "evaluate_every": 2,
    "measure_noise": True,
    "keep_trust_ratios": False,
    "keep_weights": True,
}


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_a_setting_changes_the_network_unless_it_is_known_not_to(name):
    condition = replace(SHORT, ranks=2)
    other = replace(condition, **{name: OTHER_SETTINGS[name]})
    keys = [network_key(settings, (8, 8, 1), 10) for settings in (condition, other)]
    assert (keys[0] == keys[1]) is (name in NOT_IN_GRAPH)


@functools.cache
def graph_of(condition):
    """What TensorFlow computes in a training step, and the settings of model and optimizer."""
    tf.keras.backend.clear_session()
    model, _ = compiled(condition, (8, 8, 1), 10)
    batch = (tf.TensorSpec((None, 8, 8, 1)), tf.TensorSpec((None,), tf.int64))
    graph = tf.function(model.train_step).get_concrete_function(batch).graph.as_graph_def()
    # TensorFlow counts these functions over all graphs of a process.
    program = re.sub(r"CustomGradient-\d+", "CustomGradient", str(graph))
    # The rate is a variable, and set before every step.
    return program, model.to_json(), {**model.optimizer.get_config(), "learning_rate": None}


LAYERWISE = replace(SHORT, optimizer="novograd")


def test_runs_that_share_a_network_would_build_the_same_one():
    other = replace(LAYERWISE, **{name: OTHER_SETTINGS[name] for name in NOT_IN_GRAPH})
    assert graph_of(other) == graph_of(LAYERWISE)


@pytest.mark.parametrize("name", ["width", "ghost_batches", "batch_norm_momentum", "weight_decay"])
def test_another_network_shows_in_its_graph(name):
    other = replace(LAYERWISE, **{name: OTHER_SETTINGS[name]})
    assert graph_of(other) != graph_of(LAYERWISE)


def test_a_network_is_shared_by_runs_that_compute_alike():
    def network(**settings):
        return network_for(replace(SHORT, **settings), 0, load("digits"), 1)

    plain = network()
    assert network(width=2) is not plain
    assert network(epochs=5, images=200) is plain


def test_the_network_of_photographs_looks_at_their_mean_over_all_places():
    condition = Condition(model="wide_resnet", width=1)
    small, large = (build_model(condition, (size, size, 3), 10) for size in (32, 64))
    assert small.count_params() == large.count_params()
    apart, further = (build_model(condition, (size, size, 1), 10) for size in (8, 16))
    assert apart.count_params() < further.count_params()


def test_the_network_of_photographs_gets_them_centered():
    model = build_model(Condition(model="wide_resnet", width=1), (32, 32, 3), 10)
    logits = model(tf.fill((1, 32, 32, 3), 0.5))
    np.testing.assert_allclose(logits, np.zeros((1, 10)), atol=1e-6)


def test_a_run_lets_go_of_its_images(monkeypatch):
    kept = []

    def watched(data, condition):
        part = part_of(data, condition)
        kept.append(weakref.ref(part))
        return part

    monkeypatch.setattr(study_training, "part_of", watched)
    train(SHORT, 0, load("digits"), lambda row: None)
    gc.collect()
    assert [one() for one in kept] == [None]


def test_the_end_of_a_run_waits_for_no_tuner():
    dataset = study_training.dataset_of([load("digits")], SHORT, 0, rank=0, size=1)
    assert not dataset.options().autotune.enabled
