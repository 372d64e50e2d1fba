"""A forked rank, and one that is observed, makes fewer graphs and trains as others do."""

import pytest

from hvdcourse.launch.run import run_quickly
from hvdcourse.rank.variables import OBSERVE_VARIABLE

pytestmark = [pytest.mark.ranks, pytest.mark.usefixtures("nothing_left")]

GRAPH = "a graph is made"
TRAINING = """
    import tensorflow as tf
    from hvdcourse import load, report
    from hvdcourse.training.optimizers import LAMB

    class Network(tf.keras.Sequential):
        def train_step(self, data):
            print("a graph is made")
            return super().train_step(data)

    digits = load("digits")
    tf.keras.utils.set_random_seed(1)
    for optimizer in (tf.keras.optimizers.Adam(0.1), LAMB(0.1)):
        layers = [tf.keras.layers.Flatten(), tf.keras.layers.Dense(10, activation="softmax")]
        model = Network([tf.keras.Input(digits.train_images.shape[1:]), *layers])
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
        images, labels = digits.train_images[:64], digits.train_labels[:64]
        report("history", model.fit(images, labels, epochs=3, verbose=0).history)
"""


NEW = {"HVDCOURSE_FORK": "0"}


def test_one_graph_is_made_for_each_training_and_the_numbers_stay(script):
    path = script(TRAINING)
    plain, forked, observed = (
        run_quickly(path, 1, environment=variables).ranks[0]
        for variables in (NEW, {}, {OBSERVE_VARIABLE: "training"} | NEW)
    )
    for quick in (forked, observed):
        assert plain.output.count(GRAPH) > quick.output.count(GRAPH) == 2
        for before, after in zip(histories(plain), histories(quick), strict=True):
            assert before == {name: pytest.approx(values) for name, values in after.items()}


def histories(rank):
    return [entry["value"] for entry in rank.evidence if entry.get("report") == "history"]
