"""The rates that callbacks give each step, as the optimizer has them."""

import horovod.tensorflow.keras as hvd
import pytest
import tensorflow as tf

from hvdcourse.study.applied_rates import applied_rates

pytestmark = pytest.mark.ranks


def test_every_step_shows_the_rate_that_was_set_for_it():
    hvd.init()
    setters = [tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (1 + epoch))]
    assert applied_rates(setters, 0.5, epochs=2, steps=3) == pytest.approx([0.1] * 3 + [0.05] * 3)
    assert applied_rates([], 0.5, epochs=1, steps=2) == pytest.approx([0.5] * 2)
