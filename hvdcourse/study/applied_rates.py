"""Which learning rate do a set of callbacks really give each step?"""

from collections.abc import Sequence

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf


class KeepRates(tf.keras.callbacks.Callback):
    """Keeps the optimizer's learning rate at the end of every step, in ``rates``."""

    def __init__(self) -> None:
        super().__init__()
        self.rates: list[float] = []

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        """Read the rate."""
        self.rates.append(float(self.model.optimizer.learning_rate.numpy()))


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
    kept = KeepRates()
    samples, targets = np.ones((8 * steps, 4)), np.ones(8 * steps)
    model.fit(samples, targets, batch_size=8, epochs=epochs, callbacks=[*setters, kept], verbose=0)
    return kept.rates
