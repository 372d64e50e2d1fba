"""The settings of a run: which are refused, and the learning rate that they give each step."""

import itertools
import math
from dataclasses import asdict

import pytest

from hvdcourse.errors import BadInput
from hvdcourse.study.condition import Condition


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": "resnet"}, "model should be 'convnet', 'wide_resnet' or 'transformer'; got"),
        ({"batch_norm": False}, "batch_norm should be 'none', 'local' or 'sync'; got False"),
        ({"ranks": 0}, "ranks should be greater than 0; got 0"),
        ({"ranks": True}, "ranks should be a valid integer; got True"),
        ({"epochs": 2.5}, "epochs should be a valid integer; got 2.5"),
        ({"images": 0}, "images should be greater than 0; got 0"),
        ({"hold_out": -1}, "hold_out should be greater than or equal to 0; got -1"),
        ({"warmup_epochs": -1}, "warmup_epochs should be greater than or equal to 0; got -1"),
        ({"learning_rate": 0}, "learning_rate should be greater than 0; got 0"),
        ({"learning_rate": math.inf}, "learning_rate should be a finite number; got inf"),
        ({"learning_rate": math.nan}, "learning_rate should be a finite number; got nan"),
        ({"learning_rate": True}, "learning_rate should be a valid number; got True"),
        ({"learning_rate": "1"}, "learning_rate should be a valid number; got '1'"),
        ({"target": math.nan}, "target should be a finite number; got nan"),
        ({"batch_norm_momentum": 1.5}, "batch_norm_momentum should be .* equal to 1; got 1.5"),
        ({"keep_weights": 1}, "keep_weights should be a valid boolean; got 1"),
        ({"data": None}, "data should be a valid string; got None"),
        ({"model": "transformer", "width": 6}, "width .* must be a multiple of 4; got 6"),
        ({"ghost_batches": 2}, "ghost_batches need batch_norm 'local'; got 'none'"),
        ({"measure_noise": True}, "measure_noise .* needs ranks of 2 or more"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_setting(settings, said):
    with pytest.raises(BadInput, match=said):
        Condition(**settings)


def test_whole_numbers_may_stand_for_numbers():
    assert Condition(learning_rate=1, target=1, warmup_epochs=2).full_rate == 1


def test_a_setting_that_does_not_exist_names_the_condition_and_one_that_does():
    with pytest.raises(
        BadInput, match=r"condition 'big': .* 'batchsize'; did you mean batch_size\?"
    ):
        Condition.from_mapping("big", {"batchsize": 32})
    with pytest.raises(BadInput, match="condition 'big': width should be greater"):
        Condition.from_mapping("big", {"width": 0})


def test_settings_written_and_read_again_are_the_same_condition():
    condition = Condition(ranks=2, images=64, target=0.9)
    assert Condition.from_mapping("again", asdict(condition)) == condition


@pytest.mark.parametrize(("scaling", "full"), [("none", 0.1), ("linear", 0.4), ("sqrt", 0.2)])
def test_the_rate_is_scaled_with_the_global_batch(scaling, full):
    condition = Condition(
        learning_rate=0.1, scaling=scaling, base_batch_size=32, batch_size=64, ranks=2
    )
    assert condition.full_rate == pytest.approx(full)


def test_a_warmup_begins_at_the_single_rate_and_ends_exactly_at_the_full_one():
    condition = Condition(learning_rate=0.1, scaling="linear", ranks=8, warmup_epochs=2, epochs=4)
    rates = [condition.rate_at(step, steps_per_epoch=5) for step in range(20)]
    assert rates[0] == 0.1
    rises = [after - before for before, after in itertools.pairwise(rates[:11])]
    assert rises == pytest.approx([0.07] * 10)
    assert rates[10:] == [condition.full_rate] * 10


def test_a_warmup_to_a_rate_that_is_not_scaled_begins_at_zero():
    condition = Condition(learning_rate=0.1, warmup_epochs=2, epochs=4)
    rates = [condition.rate_at(step, steps_per_epoch=5) for step in range(20)]
    assert rates[:11] == pytest.approx([step / 100 for step in range(11)])
    assert rates[10:] == [0.1] * 10


def test_the_step_schedule_falls_after_a_half_and_three_quarters_of_the_epochs():
    condition = Condition(learning_rate=1.0, schedule="step", epochs=8)
    rates = [condition.rate_at(step, steps_per_epoch=3) for step in range(24)]
    assert rates == pytest.approx([1.0] * 12 + [0.1] * 6 + [0.01] * 6)


def test_images_are_counted_less_those_held_out():
    assert Condition(hold_out=10).images_of(100) == 90
    assert Condition(hold_out=10, images=50).images_of(100) == 50


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"images": 91, "hold_out": 10}, "images=91, but there are 90 to train on"),
        ({"hold_out": 100}, "there are 0, and 100 held out"),
        ({"hold_out": 200}, "there are 0, and 200 held out"),
        ({"ranks": 4, "images": 3}, "4 ranks need an image each"),
        ({"ranks": 4, "hold_out": 3}, "4 ranks need an image each"),
    ],
)
def test_more_images_than_there_are_is_refused(settings, said):
    with pytest.raises(BadInput, match=said):
        Condition(**settings).images_of(100)
