"""What a training step computes and moves, counted; and the roofs, measured."""

import tensorflow as tf

from hvdcourse.training.roofline import measure_roofs, operations_per_image, work_of_step


def network():
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((4, 4, 1)),
            tf.keras.layers.Conv2D(2, 3, padding="same"),  # 18 numbers at 16 places
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(5),  # 160 numbers at one place
        ]
    )


def test_a_kernel_does_two_operations_for_each_number_at_each_place():
    assert operations_per_image(network()) == 2 * (18 * 16 + 160)


def test_weights_are_moved_once_a_step_and_values_once_an_image():
    operations, moved = work_of_step(network(), 10)
    weights, values = 18 + 2 + 160 + 5, 32 + 32 + 5
    assert operations == 10 * 3 * operations_per_image(network())
    assert moved == 4 * (8 * weights + 10 * 5 * values)


def test_both_roofs_are_measured():
    assert all(roof > 0 for roof in measure_roofs(8, 100, at_once=2, repeats=2))
