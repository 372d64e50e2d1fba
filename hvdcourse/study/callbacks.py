"""What a study's run sets and measures while Keras trains."""

import time
from collections.abc import Callable
from typing import Any

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf


def finite(value: float) -> float | None:
    """Return the number with six digits, or None for one that JSON cannot hold."""
    return float(f"{value:.6g}") if np.isfinite(value) else None


class SetRate(tf.keras.callbacks.Callback):
    """Sets the learning rate before every step, and keeps what was set in ``rates``."""

    def __init__(self, rate_at: Callable[[int], float]):
        super().__init__()
        self.rate_at = rate_at
        self.rates: list[float | None] = []

    def on_train_batch_begin(self, batch: int, logs: dict[str, float] | None = None) -> None:
        """Set the rate of the step that comes now."""
        self.model.optimizer.learning_rate.assign(self.rate_at(len(self.rates)))
        self.rates.append(finite(float(self.model.optimizer.learning_rate.numpy())))


class MeasureEpochs(tf.keras.callbacks.Callback):
    """Tests the network after every epoch, on all ranks together.

    ``tests`` are this rank's part of the test images, and their labels. Every rank gets the
    figures of the whole test set, exactly: its parts are weighted with their size. Where batch
    normalization keeps averages of its own on each rank, each part is judged with those.
    """

    def __init__(
        self,
        tests: tuple[np.ndarray, np.ndarray],
        images_per_epoch: int,
        size: int,
        batch_size: int,
        on_epoch: Callable[[dict[str, Any]], None],
    ):
        super().__init__()
        self.tests, self.images_per_epoch, self.size = tests, images_per_epoch, size
        self.batch_size, self.on_epoch = batch_size, on_epoch
        self.epochs: list[dict[str, Any]] = []
        self.steps = self.steps_before = 0
        self.began = self.last_step = 0.0

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Start the epoch's clock."""
        self.steps_before = self.steps
        self.began = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        """Count the step."""
        self.steps += 1
        self.last_step = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Test, and keep the epoch's figures."""
        seconds = self.last_step - self.began
        # Where the target is reached an epoch is not gone through to its end.
        part = (self.steps - self.steps_before) / self.params["steps"]
        images = part * self.images_per_epoch
        test_loss, test_accuracy = self.test()
        # Shards differ by one image at most, and each counts alike, as its gradients do.
        loss, accuracy = self.mean_of_ranks([logs["loss"], logs["accuracy"]])
        row = {
            "epoch": epoch + 1,
            "step": self.steps,
            "loss": finite(loss),
            "accuracy": finite(accuracy),
            "test_loss": finite(test_loss),
            "test_accuracy": finite(test_accuracy),
            "seconds": round(seconds, 4),
            "images_per_second": round(images / seconds, 1),
        }
        self.epochs.append(row)
        self.on_epoch(row)

    def mean_of_ranks(self, values: list[float]) -> list[float]:
        """Return the mean of all ranks' values."""
        if self.size == 1:
            return values
        return hvd.allreduce(tf.constant(values, tf.float64)).numpy().tolist()

    def test(self) -> tuple[float, float]:
        """Return the loss and the accuracy on all ranks' test images."""
        entered = time.perf_counter()
        images, labels = self.tests
        sums = np.zeros(3)
        for begin in range(0, len(images), self.batch_size):
            part = slice(begin, begin + self.batch_size)
            logits = self.model.predict_on_batch(images[part])
            losses = tf.keras.losses.sparse_categorical_crossentropy(
                labels[part], logits, from_logits=True
            )
            right = logits.argmax(axis=1) == labels[part]
            sums += [float(np.sum(losses)), np.sum(right), len(right)]
        total, right, count = self.mean_of_ranks(list(sums))
        # A test in the middle of an epoch is no part of its training time.
        testing = time.perf_counter() - entered
        self.began, self.last_step = self.began + testing, self.last_step + testing
        return total / count, right / count

    def images_per_second(self) -> float:
        """Return the median of all epochs but the first, in which TensorFlow builds its graph."""
        speeds = [row["images_per_second"] for row in self.epochs]
        return float(np.median(speeds[1:] or speeds)) if speeds else 0.0


class StopAtTarget(tf.keras.callbacks.Callback):
    """Ends the training as soon as a test accuracy is reached, looked for every so many steps."""

    def __init__(self, measure: MeasureEpochs, target: float, every: int):
        super().__init__()
        self.measure, self.target, self.every = measure, target, every
        self.steps = 0
        self.reached_at: int | None = None

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        """Look, if it is time to."""
        self.steps += 1
        if self.steps % self.every or self.reached_at is not None:
            return
        # All ranks have the same figure, and so decide alike.
        if self.measure.test()[1] >= self.target:
            self.reached_at = self.steps
            self.model.stop_training = True


class WatchLayers(tf.keras.callbacks.Callback):
    """Keeps LAMB's trust ratio of every layer after every step, in ``trust_ratios``."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_ratios: dict[str, list[float | None]] = {}

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        """Read the ratios of the step that has just been taken."""
        for name, ratio in self.model.optimizer.trust_ratios().items():
            self.trust_ratios.setdefault(name, []).append(finite(ratio))
