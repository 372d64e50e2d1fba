"""Records what training does on a rank: samples, gradients, learning rates, weights.

Every note is taken where TensorFlow itself passes by, so that it does not matter how a script
spells its training: ``fit`` or a loop, in a graph or eagerly. Arrays are kept as fingerprints.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from hvdcourse.rank.copy_of_kill import CopyOfKill
from hvdcourse.rank.fingerprints import fingerprints, identities
from hvdcourse.rank.modes import MANY, outputs_by_mode
from hvdcourse.rank.own_digits import limit_test_images
from hvdcourse.rank.pretended_gpus import PretendedGPUs
from hvdcourse.rank.run_folder import RunFolder
from hvdcourse.rank.tracing import create_state_once
from hvdcourse.rank.variables import TEST_IMAGES_VARIABLE

# ε of this course's LAMB.
ADAMS_EPSILON = 1e-6


class TrainingObserver:
    """Takes notes of one rank's training from the moment ``start`` is called.

    The notes, in the order in which things happen, each under its name:

    - ``place``: once, before the first update: Horovod's rank, size and local rank (None where
      Horovod was not initialized), the GPUs that the process sees, the gradient's bytes, and the
      number of dimensions of each weight.
    - ``search``: that the rank looks for the newest checkpoint.
    - ``epoch``: the number of an epoch that ``fit`` begins.
    - ``trained`` and ``evaluated``: the identities of a batch's samples.
    - ``gradient`` and ``loss``: what a tape has computed from the rank's own samples, and of what.
      Variables come in the order in which a tape first got them, there and in ``update``.
    - ``signs``: once, Adam's first direction, g / (|g| + ε), of the first gradient g.
    - ``update``: the gradient that the optimizer was given, the weights before, and the rate; from
      the second one on how far (as a norm) the update before it has moved each weight.
    - ``end``: the weights at the end, and for each test image of ``digits`` 1 where they are right,
      and the loss if the outputs are logits.
    - ``normalized``: at the end of a model with weights that no gradient changes, such as moving
      averages: see ``outputs_by_mode``.
    """

    def __init__(self, folder: RunFolder, rank: int):
        self.folder, self.rank = folder, rank
        self.model: tf.keras.Model | None = None
        self.depth = 0
        self.weights: tuple[np.ndarray, ...] | None = None
        self.optimizers: dict[int, tuple[int, Any]] = {}
        self.numbers: dict[Any, int] = {}
        self.of_batch: list[list[float]] = []
        self.gpus = PretendedGPUs()
        self.copy_of_kill = CopyOfKill(rank)

    def note(self, name: str, value: Any) -> None:
        """Add a note to the rank's evidence."""
        self.folder.append(self.rank, "evidence", {"note": name, "value": value})

    def start(self, pretend_gpus: bool = True) -> None:
        """Begin to take notes; where there are no GPUs, some are pretended if that is wanted."""
        create_state_once()
        if TEST_IMAGES_VARIABLE in os.environ:
            limit_test_images(int(os.environ[TEST_IMAGES_VARIABLE]))
        if pretend_gpus and not tf.config.list_physical_devices("GPU"):
            self.gpus.pretend()
        tf.GradientTape.gradient = self.observed_tape(tf.GradientTape.gradient)
        tf.keras.Model.__call__ = self.observed_model(tf.keras.Model.__call__)
        tf.train.latest_checkpoint = self.observed_search(tf.train.latest_checkpoint)
        callbacks = tf.keras.callbacks.CallbackList
        callbacks.on_epoch_begin = self.observed_epoch(callbacks.on_epoch_begin)
        # Of the newer kind that which gets the gradients once the optimizer has aggregated them.
        (newer,) = tf.keras.optimizers.Optimizer.__bases__
        for optimizer in (newer, tf.keras.optimizers.legacy.Optimizer):
            optimizer.apply_gradients = self.observed_update(optimizer.apply_gradients)

    def observed_tape(self, gradient: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``tf.GradientTape.gradient`` with a note of the gradients of variables."""

        @functools.wraps(gradient)
        def call(tape: Any, target: Any, sources: Any, *arguments: Any, **options: Any) -> Any:
            result = gradient(tape, target, sources, *arguments, **options)
            variables = tf.nest.flatten(sources)
            pairs = with_gradient(zip(tf.nest.flatten(result), variables, strict=True))
            if pairs and all(isinstance(variable, tf.Variable) for variable in variables):
                for variable in variables:
                    self.numbers.setdefault(variable.ref(), len(self.numbers))
                loss = tf.reduce_mean(tf.nest.flatten(target)[0])
                parts = [dense(part) for part, _ in self.in_order(pairs)]
                self.when_run(self.note_gradient, [loss, *parts])
            return result

        return call

    def observed_model(self, model_call: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``tf.keras.Model.__call__`` with notes of what comes in and what comes out."""

        @functools.wraps(model_call)
        def call(model: tf.keras.Model, inputs: Any, *arguments: Any, **options: Any) -> Any:
            # Not a model within a model, nor where Keras only builds one, from symbolic inputs.
            observed = self.depth == 0 and isinstance(inputs, tf.Tensor | np.ndarray)
            training = bool(options.get("training"))
            self.depth += 1
            try:
                if observed:
                    self.model = model
                if observed and training:
                    self.observe_trained(inputs)
                outputs = model_call(model, inputs, *arguments, **options)
                if observed and not training:
                    self.observe_evaluated(inputs, outputs)
                return outputs
            finally:
                self.depth -= 1

        return call

    def observe_trained(self, inputs: Any) -> None:
        """Have a note taken of the samples that a model trains on."""
        self.when_run(functools.partial(self.note_samples, "trained"), [inputs])

    def observe_evaluated(self, inputs: Any, outputs: Any) -> None:
        """Have a note taken of the samples that a model evaluates."""
        self.when_run(functools.partial(self.note_samples, "evaluated"), [inputs])

    def observed_update(self, apply_gradients: Callable[..., Any]) -> Callable[..., Any]:
        """Return an optimizer's ``apply_gradients`` with a note of what it is given."""

        @functools.wraps(apply_gradients)
        def call(optimizer: Any, grads_and_vars: Any, *arguments: Any, **options: Any) -> Any:
            pairs = [(dense(part), variable) for part, variable in with_gradient(grads_and_vars)]
            ordered = self.in_order(pairs)
            gradients = [gradient for gradient, _ in ordered]
            values = [variable.value() for _, variable in ordered]
            now = [learning_rate(optimizer), optimizer.iterations.value()]
            # Kept, so that no later optimizer gets its id.
            number, _ = self.optimizers.setdefault(id(optimizer), (len(self.optimizers), optimizer))
            take_note = functools.partial(self.note_update, number)
            self.when_run(take_note, [*now, *gradients, *values])
            return apply_gradients(optimizer, pairs, *arguments, **options)

        return call

    def observed_epoch(self, on_epoch_begin: Callable[..., Any]) -> Callable[..., Any]:
        """Return Keras' start of an epoch, with a note of it, and a copy of files if need be."""

        @functools.wraps(on_epoch_begin)
        def call(callbacks: Any, epoch: int, *arguments: Any, **options: Any) -> Any:
            self.note("epoch", epoch)
            self.copy_of_kill.begin_epoch()
            return on_epoch_begin(callbacks, epoch, *arguments, **options)

        return call

    def observed_search(self, latest_checkpoint: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``tf.train.latest_checkpoint`` with a note of each call."""

        @functools.wraps(latest_checkpoint)
        def call(*arguments: Any, **options: Any) -> Any:
            self.note("search", None)
            return latest_checkpoint(*arguments, **options)

        return call

    def in_order(self, pairs: list[tuple[Any, tf.Variable]]) -> list[tuple[Any, tf.Variable]]:
        """Return gradients, each with its variable, in the order of ``numbers``."""
        last = len(self.numbers)
        return sorted(pairs, key=lambda pair: self.numbers.get(pair[1].ref(), last))

    def when_run(self, take_note: Callable[..., None], tensors: list[Any]) -> None:
        """Call ``take_note`` with the tensors' values each time that this place is come by."""
        tf.numpy_function(take_note, tensors, [])

    def note_gradient(self, loss: np.ndarray, *gradient: np.ndarray) -> None:
        """Take a note of the gradient of this rank's own samples; once, if it is computed again."""
        found, before = fingerprints(gradient), self.of_batch
        if len(found) == len(before) and np.allclose(found, before, 1e-4):
            return
        self.of_batch = found
        self.note("gradient", found)
        self.note("loss", loss)

    def note_samples(self, name: str, samples: np.ndarray) -> None:
        """Take a note of which samples a batch has."""
        self.of_batch = []
        if name == "trained":
            self.copy_of_kill.train(len(samples))
        self.note(name, identities(samples))

    def note_update(
        self, number: int, rate: np.ndarray, iteration: np.ndarray, *arrays: np.ndarray
    ) -> None:
        """Take a note of an optimizer's update: gradients first, then the weights before it.

        ``number`` tells the script's optimizers apart.
        """
        gradient, weights = arrays[: len(arrays) // 2], arrays[len(arrays) // 2 :]
        note = {
            "optimizer": number,
            "rate": rate,
            "iteration": iteration,
            "gradient": fingerprints(gradient),
            "weights": fingerprints(weights),
        }
        if self.weights is None:
            self.note(
                "place",
                {
                    **horovod_place(),
                    "gpus": self.gpus.visible(),
                    "bytes": sum(array.nbytes for array in gradient),
                    "dimensions": [array.ndim for array in weights],
                },
            )
            # Of a gradient that is nothing but rounding errors the sign alone would be chance.
            signs = [array / (np.abs(array) + ADAMS_EPSILON) for array in gradient]
            self.note("signs", fingerprints(signs))
        else:
            pairs = zip(weights, self.weights, strict=True)
            note["moved"] = [float(np.linalg.norm(after - before)) for after, before in pairs]
        self.weights = weights
        self.note("update", note)

    def finish(self) -> None:
        """Take the last note: the weights at the end and how good they are."""
        if self.model is None:
            return
        from hvdcourse.data.sets import load

        weights = fingerprints_of_weights(self.model)
        data, self.depth = load("digits"), 1
        outputs = np.asarray(self.model(data.test_images, training=False))
        correct = (outputs.argmax(axis=-1) == data.test_labels).astype(int)
        losses = tf.keras.losses.sparse_categorical_crossentropy(data.test_labels, outputs, True)
        self.note("end", {"weights": weights, "correct": correct, "losses": losses})
        if self.model.non_trainable_variables:
            images, labels = data.train_images[:MANY], data.train_labels[:MANY]
            self.note("normalized", outputs_by_mode(self.model, images, labels))


def with_gradient(grads_and_vars: Any) -> list[tuple[Any, tf.Variable]]:
    """Return the gradients that there are, each with its variable."""
    return [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]


def fingerprints_of_weights(model: tf.keras.Model) -> list[list[float]]:
    """Return the fingerprints of all that a model trains."""
    return fingerprints([variable.numpy() for variable in model.trainable_variables])


def dense(gradient: Any) -> tf.Tensor:
    """Return a gradient as a tensor, also that of an embedding, which comes as slices."""
    return tf.convert_to_tensor(gradient)


def learning_rate(optimizer: Any) -> tf.Tensor:
    """Return the learning rate of the update that comes next."""
    rate = getattr(optimizer, "_learning_rate", None)
    rate = optimizer.learning_rate if rate is None else rate
    return tf.convert_to_tensor(rate(optimizer.iterations) if callable(rate) else rate)


def horovod_place() -> dict[str, int | None]:
    """Return what Horovod says of this process's place; None for each where it was not asked to."""
    import horovod.tensorflow as hvd

    names = ("rank", "size", "local_rank")
    return {name: getattr(hvd, name)() if hvd.is_initialized() else None for name in names}
