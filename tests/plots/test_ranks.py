"""What compare_ranks shows of real ranks: of the solution, without a step, and of other scripts."""

import pytest

from hvdcourse import compare_ranks
from hvdcourse.checks.stages import parse, render
from hvdcourse.errors import BadInput
from hvdcourse.launch.run import run_quickly
from hvdcourse.paths import SOLUTIONS
from hvdcourse.plots.ranks import COMPARED

pytestmark = pytest.mark.ranks

IMAGES, NP = 97, 3
ALL = set(range(1, 8))
OF_ANOTHER_SHAPE = """
import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

hvd.init()
samples = np.random.default_rng(hvd.rank()).random((10, 3)).astype(np.float32)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1 * (1 + hvd.rank())))
model.compile(optimizer, "mse")
for _ in range(4):
    model.train_on_batch(samples, samples[:, 0])
"""


@pytest.fixture
def summaries(tmp_path):
    """Return a function that runs fashion_mnist.py with some steps, and returns each rank's."""
    parts = parse((SOLUTIONS / "fashion_mnist.py").read_text(), "fashion_mnist.py")

    def of(steps):
        script = tmp_path / "some_steps.py"
        script.write_text(render(parts, steps))
        options = {"images": IMAGES, "epochs": 2, "environment": COMPARED}
        result = run_quickly(script, NP, must_succeed=False, **options)
        return compare_ranks({"this": result}).runs["this"]

    return of


def same(values):
    return all(value == pytest.approx(values[0], rel=1e-5) for value in values)


def same_first(ranks):
    return same([rank.first_weights for rank in ranks])


def same_last(ranks):
    return same([rank.last_weights for rank in ranks])


def test_ranks_of_the_solution_differ_in_their_images_alone(summaries):
    ranks = summaries(ALL)
    assert [rank.images for rank in ranks] == [33, 32, 32]
    assert [(rank.repeated, rank.tests, rank.steps) for rank in ranks] == [(0, 120, 4)] * NP
    assert [rank.rate for rank in ranks] == pytest.approx([0.002] * NP)
    assert same_first(ranks)
    assert same_last(ranks)
    assert same([rank.reported["loss"] for rank in ranks])


def test_without_averaged_gradients_equal_weights_part(summaries):
    ranks = summaries(ALL - {3})
    assert same_first(ranks)
    assert not same_last(ranks)
    # The metrics are averaged all the same, and hide it.
    assert same([rank.reported["val_accuracy"] for rank in ranks])


def test_without_a_broadcast_weights_are_never_equal(summaries):
    ranks = summaries(ALL - {4})
    assert not same_first(ranks)
    assert not same_last(ranks)


def test_without_shares_every_image_is_elsewhere_too(summaries):
    for rank in summaries(ALL - {5}):
        assert rank.images == rank.repeated == IMAGES


def test_a_run_that_failed_says_how(summaries):
    assert "NameError: name 'hvd' is not defined" in summaries(ALL - {1})


def test_a_script_of_another_shape_without_fit_is_compared(tmp_path):
    script = tmp_path / "other.py"
    script.write_text(OF_ANOTHER_SHAPE)
    table = compare_ranks(run_quickly(script, 2, environment=COMPARED))
    zero, one = table.runs["run"]
    assert [(rank.images, rank.repeated, rank.steps) for rank in (zero, one)] == [(10, 0, 4)] * 2
    assert [zero.rate, one.rate] == pytest.approx([0.1, 0.2])
    assert zero.first_weights != pytest.approx(one.first_weights)
    _, head, first, second = str(table).splitlines()
    assert len(head) == len(first) == len(second)
    assert first.split()[:6] == ["run", "0", "10", "0", "0", "4"]
    assert second.split()[-2:] == ["-", "-"]


def test_a_run_that_noted_nothing_is_refused(tmp_path):
    script = tmp_path / "nothing.py"
    script.write_text("print(1)\n")
    result = run_quickly(script, 2, environment=COMPARED)
    with pytest.raises(BadInput, match=r"rank 0 of 'mine' noted no training step.*COMPARED"):
        compare_ranks({"mine": result})
    with pytest.raises(BadInput, match="no run to compare"):
        compare_ranks({})
