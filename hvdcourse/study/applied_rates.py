"""Which learning rate do a set of callbacks really give each step?"""

from collections.abc import Sequence

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf


def applied_rates(
    setters: Sequence[tf.keras.callbacks.Callback], rate: float, epochs: int, steps: int
) -> list[float]:
    """Train a tiny network on each rank, after ``hvd.init()``; return the rate of every step.

    Args:
        setters: callbacks that set the learning rate.
        rate: the rate that the optimizer is made with.
        epochs: times to go through the samples.
        steps: steps of an epoch.
    """
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(rate, momentum=0.9))
    model.compile(optimizer, "mse")
    rates: list[float] = []
    keep = tf.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: rates.append(float(optimizer.learning_rate.numpy()))
    )
    samples, targets = np.ones((8 * steps, 4)), np.ones(8 * steps)
    model.fit(samples, targets, batch_size=8, epochs=epochs, callbacks=[*setters, keep], verbose=0)
    return rates
