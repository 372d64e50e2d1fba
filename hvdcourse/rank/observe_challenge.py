"""Records what a program of the challenge does: its training, its answers, its speed."""

import functools
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from hvdcourse.rank.fingerprints import fingerprints, number_of_bytes
from hvdcourse.rank.observe_training import (
    TrainingObserver,
    dense,
    fingerprints_of_weights,
    with_gradient,
)
from hvdcourse.rank.run_folder import RunFolder
from hvdcourse.rank.thumbnails import thumbnails
from hvdcourse.rank.variables import KILL_VARIABLE


class ChallengeObserver(TrainingObserver):
    """Takes notes of one rank: those of ``TrainingObserver``, but others of its samples.

    - ``batch``: when a training step began, how many images it has, and their thumbnails;
    - ``step``: when an optimizer was given gradients; ``bytes``: how large they are, noted where
      TensorFlow builds the step;
    - ``answers``: the thumbnails of evaluated images, the class that the model gives them, and when
      it was noted;
    - ``end``: the weights at the end, and the ``averages`` of batch normalization.

    Where it is ``timed``, it leaves out whatever would slow the training down: there are no
    thumbnails of training images, and no gradients or weights but at the end.
    """

    def __init__(self, folder: RunFolder, rank: int, timed: bool):
        super().__init__(folder, rank)
        self.timed = timed
        self.trained_images = 0
        # As if the machine lost its power: after this many training images of its own.
        self.killed_after = float(os.environ.get(KILL_VARIABLE) or "inf")

    def observed_tape(self, gradient: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``tf.GradientTape.gradient``, with a note of gradients unless it is timed."""
        return gradient if self.timed else super().observed_tape(gradient)

    def observed_update(self, apply_gradients: Callable[..., Any]) -> Callable[..., Any]:
        """Return an optimizer's ``apply_gradients`` with a note of the time."""
        inner = apply_gradients if self.timed else super().observed_update(apply_gradients)

        @functools.wraps(apply_gradients)
        def call(optimizer: Any, grads_and_vars: Any, *arguments: Any, **options: Any) -> Any:
            pairs = with_gradient(grads_and_vars)
            gradients = [dense(gradient) for gradient, _ in pairs]
            self.note("bytes", number_of_bytes(gradients))
            # What it is handed is there only once the step has computed it.
            self.when_run(self.note_step, [tf.reshape(part, [-1])[0] for part in gradients[:1]])
            return inner(optimizer, pairs, *arguments, **options)

        return call

    def observe_trained(self, inputs: Any) -> None:
        """Have a note taken of the batch that a model trains on."""
        self.when_run(self.note_batch, [inputs])

    def observe_evaluated(self, inputs: Any, outputs: Any) -> None:
        """Have a note taken of what a model answers."""
        self.when_run(self.note_answers, [inputs, outputs])

    def note_batch(self, samples: np.ndarray) -> None:
        """Take a note of a training step's images; end here if it is time to."""
        if self.trained_images >= self.killed_after:
            os.kill(os.getpid(), signal.SIGKILL)
        self.trained_images += len(samples)
        images: np.ndarray | list[float] = [] if self.timed else np.round(thumbnails(samples), 4)
        self.note("batch", {"time": time.time(), "size": len(samples), "images": images})

    def note_step(self, *_: np.ndarray) -> None:
        """Take a note of when an optimizer was given gradients."""
        self.note("step", time.time())

    def note_answers(self, samples: np.ndarray, outputs: np.ndarray) -> None:
        """Take a note of the classes that the model gives to images."""
        answers = outputs.reshape(len(samples), -1).argmax(axis=1)
        images = np.round(thumbnails(samples), 4)
        self.note("answers", {"images": images, "classes": answers, "time": time.time()})

    def finish(self) -> None:
        """Take the last note: the weights at the end."""
        if self.model is not None:
            others = self.model.non_trainable_variables
            averages = [variable.numpy() for variable in others if variable.dtype.is_floating]
            weights = fingerprints_of_weights(self.model)
            self.note("end", {"weights": weights, "averages": fingerprints(averages)})
