"""What one device and its input pipelines do, measured in turns."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from hvdcourse.study.turns import in_turns
from hvdcourse.training.fed_epoch import FedEpoch
from hvdcourse.training.feeding import Batch, feed

# A step with few images is too short for the clock: so many images are timed together.
IMAGES_TIMED = 32


def time_batches(
    train_step: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    images: np.ndarray,
    labels: np.ndarray,
    sizes: Sequence[int],
    turns: int,
) -> dict[int, list[float]]:
    """Return the seconds of a training step for each batch size, as often as there are turns.

    Args:
        train_step: trains on images and labels, and returns the loss.
        images: of shape (count, height, width, channels); taken again where a batch needs more.
        labels: their classes.
        sizes: batch sizes.
        turns: how often each size is measured.
    """

    def timer(size: int) -> Callable[[], float]:
        rows = np.arange(size) % len(images)
        batch = tf.constant(images[rows]), tf.constant(labels[rows])
        train_step(*batch)  # builds the graph
        steps = max(1, IMAGES_TIMED // size)

        def measure() -> float:
            began = time.perf_counter()
            for _ in range(steps):
                loss = train_step(*batch)
            loss.numpy()  # waits until the device is done
            return (time.perf_counter() - began) / steps

        return measure

    return in_turns({size: timer(size) for size in sizes}, turns)


def time_workers(
    batches: tf.keras.utils.Sequence, counts: Sequence[int], step_seconds: float, turns: int = 3
) -> dict[int, list[float]]:
    """Return the seconds of an epoch for each number of workers, with a step that sleeps.

    The batches come through the queue that Keras's ``fit`` uses. ``fit`` itself waits up to 5 s for
    that queue at its end, which would hide what the workers gain.
    """

    def epoch_with(workers: int) -> float:
        queue = tf.keras.utils.OrderedEnqueuer(batches)
        queue.start(workers=workers, max_queue_size=max(counts))
        try:
            arriving, began = queue.get(), time.perf_counter()
            for _ in range(len(batches)):
                next(arriving)
                time.sleep(step_seconds)
            return time.perf_counter() - began
        finally:
            queue.stop()

    return in_turns({count: partial(epoch_with, count) for count in counts}, turns)


def compare_overlap(
    plain: tf.data.Dataset,
    overlapped: tf.data.Dataset,
    step: Callable[[Batch], Any],
    batch_size: int,
    turns: int = 5,
) -> dict[str, FedEpoch]:
    """Feed a device without and with overlap, and print formula and measurement of both.

    The time of the processor and that of the device are measured in the epochs of the plain
    pipeline. Returns the median epoch of both kinds.
    """
    feed(plain.take(1), 1, step)  # builds the graphs
    pipelines = {"in turn": plain, "overlapped": overlapped}
    cases = {
        name: lambda pipeline=pipeline: feed(pipeline, 1, step)[0]
        for name, pipeline in pipelines.items()
    }
    epochs = in_turns(cases, turns)
    asked, arrived, ended = (
        np.concatenate([getattr(epoch, name) for epoch in epochs["in turn"]])
        for name in ("asked", "arrived", "ended")
    )
    waits, works = np.median(arrived - asked), np.median(ended - arrived)
    batches = len(epochs["in turn"][0].ended)
    formulas = {
        "in turn": batches * (waits + works),
        "overlapped": batches * max(waits, works) + min(waits, works),
    }
    t_p, t_d = 1e3 * waits / batch_size, 1e3 * works / batch_size
    print(f"t_p = {t_p:.2f} ms, t_d = {t_d:.2f} ms an image")
    chosen = {}
    for name, fed in epochs.items():
        chosen[name] = sorted(fed, key=lambda epoch: epoch.seconds)[len(fed) // 2]
        seconds = chosen[name].seconds
        print(f"{name:10}  formula {formulas[name]:.2f} s, measured {seconds:.2f} s")
    return chosen


def measure_pipelines(
    pipelines: Mapping[str, Iterable[Batch]], step: Callable[[Batch], Any], turns: int = 5
) -> dict[str, list[FedEpoch]]:
    """Train an epoch with each pipeline in turns, and print what arrived from the second turn on.

    Samples have the columns ``path`` and ``label``, and the times ``decoded`` and ``shifted``.
    Returns these later epochs by the names of their pipelines.
    """
    rows = "{:20}{:>9}{:>13}{:>7}{:>11}{:>9}{:>9}{:>13}"
    print(
        rows.format("", "images/s", "device", "cores", "decoded", "shifted", "order", "classes in")
    )
    print(rows.format("", "", "busy", "busy", "again", "again", "is new", "first batch"))

    def epoch_of(dataset: Iterable[Batch]) -> tuple[FedEpoch, float]:
        began, computed = time.perf_counter(), time.process_time()
        epoch = feed(dataset, 1, step)[0]
        return epoch, (time.process_time() - computed) / (time.perf_counter() - began)

    cases = {
        name: lambda pipeline=pipeline: epoch_of(pipeline) for name, pipeline in pipelines.items()
    }
    later = {name: fed[1:] for name, fed in in_turns(cases, turns).items()}
    for name, measured in later.items():
        *_, before, last = (epoch for epoch, _ in measured)
        again = (
            np.mean(last.column(work)[:, 0] > last.asked[0]) for work in ("decoded", "shifted")
        )
        speed = np.median([epoch.images_per_second for epoch, _ in measured])
        print(
            rows.format(
                name,
                f"{speed:,.0f}",
                f"{np.mean([epoch.busy for epoch, _ in measured]):.0%}",
                f"{np.mean([cores for _, cores in measured]):.2f}",
                *(f"{share:.0%}" for share in again),
                "yes" if last.samples["path"] != before.samples["path"] else "no",
                len(set(last.samples["label"][0])),
            )
        )
    return {name: [epoch for epoch, _ in measured] for name, measured in later.items()}
