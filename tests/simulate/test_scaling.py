"""Predictions for published networks, and the published chart."""

import numpy as np
import pytest
import tensorflow as tf

from hvdcourse.errors import BadInput
from hvdcourse.simulate.chart import calibrate, predict_chart
from hvdcourse.simulate.networks import NETWORKS
from hvdcourse.simulate.scaling import (
    SLOWDOWN,
    USABLE,
    efficiency,
    predict_step,
    steps_to_accuracy,
    what_if,
)

KERAS = {
    "resnet50": tf.keras.applications.ResNet50,
    "resnet101": tf.keras.applications.ResNet101,
    "inception_v3": tf.keras.applications.InceptionV3,
    "vgg16": tf.keras.applications.VGG16,
}


def products(layer):
    """Return the multiplications of a layer of Keras for one image; 0 where it has no kernel."""
    if not hasattr(layer, "kernel"):
        return 0
    return int(np.prod(layer.kernel.shape)) * int(np.prod(layer.output_shape[1:-1]))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_weighs_and_computes_what_keras_has(name):
    # In a graph, the weights are only described: making them takes seconds.
    with tf.Graph().as_default():
        keras = KERAS[name](weights=None)
    ours = NETWORKS[name]
    assert sum(weights.products for weights in ours.weights) == sum(map(products, keras.layers))
    trainable = sum(int(np.prod(weights.shape)) for weights in keras.trainable_weights)
    # Keras gives the convolutions of ResNets a bias, and Inception's normalization no scale.
    assert ours.parameters == pytest.approx(trainable, rel=2.5e-3)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_on_one_gpu_takes_the_published_time(name):
    network = NETWORKS[name]
    assert predict_step(name).seconds == pytest.approx(network.batch / network.per_second)
    twice = predict_step(name, batch=2 * network.batch, faster=2)
    assert twice.seconds == pytest.approx(network.batch / network.per_second)


def test_the_chart_of_512_gpus_is_predicted_within_5_points():
    bars = [bar for bar in predict_chart() if bar.gpus == 512]
    assert {bar.network for bar in bars} == {"inception_v3", "resnet101", "vgg16"}
    assert all(abs(bar.points) < 5 for bar in bars)


def test_predictions_use_what_the_published_run_on_16_gpus_says():
    assert calibrate() == pytest.approx((USABLE, SLOWDOWN), abs=1e-3)


def test_a_table_has_a_row_for_each_power_of_two():
    table = what_if("resnet101", 512)
    assert list(table["gpus"]) == [2**power for power in range(10)]
    assert {len(column) for column in table.values()} == {10}
    assert table["efficiency"][0] == 1
    assert (np.diff(table["images_per_second"]) > 0).all()
    assert table["images_per_second"][0] == pytest.approx(119.4)


def test_gpus_that_do_not_fill_their_hosts_are_left_out():
    assert list(what_if("vgg16", 24, gpus_per_host=6)["gpus"]) == [1, 2, 4, 24]


def test_strong_scaling_ends_where_the_share_of_each_gpu_is_small():
    strong = what_if("resnet50", 1024, scaling="strong", batch=4096)
    assert (np.diff(strong["efficiency"]) < 0.001).all()
    assert strong["efficiency"][-1] < 0.6 < what_if("resnet50", 1024)["efficiency"][-1]


def test_delays_by_chance_cost_what_the_longest_of_them_takes():
    settings = {"link": "400gbit", "delay_ms": 6}
    for gpus, longest in ((1, 1), (2, 1 + 1 / 2), (4, 1 + 1 / 2 + 1 / 3 + 1 / 4)):
        without = predict_step("resnet50", gpus, link="400gbit")
        delayed = predict_step("resnet50", gpus, **settings)
        assert delayed.compute - without.compute == pytest.approx(0.006 * longest)
        assert delayed.seconds - without.seconds == pytest.approx(0.006 * longest, abs=0.001)


def test_efficiency_is_speed_over_gpus():
    assert efficiency(2.0, 1.0, 8) == 0.5
    assert efficiency(0.25, 1.0, 8, "strong") == 0.5


def test_at_the_critical_batch_training_takes_twice_the_least_steps():
    assert steps_to_accuracy(2048, 2048) == 2
    assert steps_to_accuracy(2048 * 1e9, 2048) == pytest.approx(1)


def test_beyond_the_critical_batch_more_gpus_cost_more_than_they_save():
    table = what_if("resnet50", 4096, critical_batch=8192, link="400gbit")
    saved = table["time"][:-1] / table["time"][1:]
    # Twice the GPUs: nearly half of the time at first, and hardly less at last.
    assert saved[0] > 1.8
    assert saved[-1] < 1.1
    assert (np.diff(table["cost"]) > 0).all()
    assert table["time"][0] == table["cost"][0] == 1


@pytest.mark.parametrize(
    "better",
    [
        {"link": "100gbit"},
        {"fp16": True},
        {"usable": 1.0},
        {"slowdown": 1.0},
        {"gpus_per_host": 8},
    ],
)
def test_what_should_help_vgg16_helps(better):
    settings = {"link": "25gbit", "gpus_per_host": 4, **better}
    assert predict_step("vgg16", 512, **settings).seconds < predict_step("vgg16", 512).seconds


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"model": "alexnet"}, "model must be one of resnet50"),
        ({"gpus": 0}, "gpus must be a whole number from 1"),
        ({"gpus": 2**21}, "gpus must be a whole number from 1"),
        ({"gpus": 6}, "gpus must fill whole hosts of 4"),
        ({"gpus_per_host": "some"}, "gpus_per_host must be a whole number"),
        ({"link": "fast"}, "a link must be one of"),
        ({"inside": "glue"}, "a link must be one of"),
        ({"batch": 0}, "batch must be a number above 0"),
        ({"scaling": "odd"}, "scaling must be weak or strong"),
        ({"fusion_mb": -1}, "fusion_mb must be a number above 0"),
        ({"cycle_ms": "nan"}, "cycle_ms must be a number above 0"),
        ({"algorithm": "star"}, "algorithm must be one of"),
        ({"faster": None}, "faster must be a number above 0"),
        ({"delay_ms": -1}, "delay_ms must be a number above 0"),
        ({"usable": 0}, "usable must be a number above 0"),
        ({"slowdown": "no"}, "slowdown must be a number above 0"),
        ({"critical_batch": -5}, "critical_batch must be a number above 0"),
    ],
)
def test_a_wrong_setting_is_named(setting, said):
    with pytest.raises(BadInput, match=said):
        what_if(**setting)


@pytest.mark.parametrize(
    ("model", "gpus", "settings", "percent"),
    [
        ("vgg16", 512, {"link": "400gbit", "inside": "nvlink"}, 93),
        ("vgg16", 512, {"link": "400gbit", "inside": "pcie", "fp16": True}, 74),
        ("vgg16", 512, {"link": "100gbit", "inside": "nvlink", "fp16": True}, 68),
        ("resnet50", 2**14, {"link": "100gbit", "inside": "nvlink"}, 82),
        ("resnet50", 2**14, {"link": "100gbit", "inside": "nvlink", "fusion_mb": 0}, 43),
    ],
)
def test_the_answers_of_lesson_5_are_the_models(model, gpus, settings, percent):
    efficiency = what_if(model, gpus, faster=10, **settings)["efficiency"][-1]
    assert round(100 * efficiency) == percent
