"""TensorFlow's profile names the operations of a step, the costly one first."""

import tensorflow as tf

from hvdcourse.training.profile import operation_times


def test_the_costly_operation_comes_first():
    @tf.function
    def step(values):
        return tf.reduce_sum(tf.linalg.matmul(values, values)) + tf.reduce_sum(tf.nn.relu(values))

    values = tf.random.normal((700, 700))
    step(values)
    times = operation_times(lambda: step(values))
    first, *_ = times
    assert "MatMul" in first
    assert all(milliseconds > 0 for milliseconds in times.values())
    assert list(times.values()) == sorted(times.values(), reverse=True)
