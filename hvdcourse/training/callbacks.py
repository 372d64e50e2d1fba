"""Keras callbacks of the course."""

import time
from typing import Any

import tensorflow as tf

from hvdcourse.rank.reports import report_metrics

# Often enough for a progress bar, seldom enough not to slow the training down.
SECONDS_BETWEEN_REPORTS = 0.5


class ReportMetrics(tf.keras.callbacks.Callback):
    """Hands the training's metrics to the progress bar and the history of ``hvdcourse run``.

    Put it last in the list, so that it sees the metrics as callbacks before it have averaged them.

    Args:
        images_per_epoch: how many images all ranks together train on in one epoch. The throughput
            counts training steps only, without the validation at an epoch's end.
    """

    def __init__(self, images_per_epoch: int):
        super().__init__()
        self.images_per_epoch = images_per_epoch
        self.epoch = 0
        self.epoch_started = self.last_report = self.last_step = 0.0

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Start the epoch's clock."""
        self.epoch = epoch + 1
        self.epoch_started = self.last_report = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        """Report how far the epoch is, every half second."""
        self.last_step = time.perf_counter()
        if self.last_step - self.last_report >= SECONDS_BETWEEN_REPORTS:
            self.last_report = self.last_step
            # Keras knows how many there are only where the data set tells.
            steps = self.params.get("steps")
            known = {"steps": steps} if steps else {}
            self.send(step=batch + 1, **known, **(logs or {}))

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Report the epoch's metrics and its throughput, and add these to what ``fit`` returns."""
        logs = {} if logs is None else logs
        logs["seconds"] = self.last_step - self.epoch_started
        logs["images_per_second"] = self.images_per_epoch / logs["seconds"]
        self.send(done=True, **logs)

    def send(self, **metrics: Any) -> None:
        """Report a row of metrics together with the epoch that they belong to."""
        numbers = {name: float(value) for name, value in metrics.items() if name != "done"}
        done = {"done": True} if metrics.get("done") else {}
        report_metrics(epoch=self.epoch, epochs=self.params["epochs"], **done, **numbers)
