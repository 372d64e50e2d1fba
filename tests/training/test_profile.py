"""TensorFlow's profile names the operations of a step, the longest first."""

import tensorflow as tf

from hvdcourse.training.profile import operation_times


def test_the_operations_of_a_step_are_named():
    @tf.function
    def step(values):
        return tf.linalg.matmul(values, values) + tf.nn.relu(values)

    values = tf.random.normal((300, 300))
    step(values)
    times = operation_times(lambda: step(values))
    assert {kind.removeprefix("_Mkl") for kind in times} >= {"MatMul", "Relu"}
    assert all(milliseconds >= 0 for milliseconds in times.values())
    assert list(times.values()) == sorted(times.values(), reverse=True)
