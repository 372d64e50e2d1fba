"""How what a model computes depends on the batch, and on whether it trains or evaluates."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_callbacks

# Training images whose outputs are compared: MANY at once, and the first FEW of them by themselves.
MANY, FEW = 256, 8


def outputs_by_mode(
    model: tf.keras.Model, images: np.ndarray, labels: np.ndarray
) -> dict[str, Any]:
    """Return how far a model's outputs for these images depend on their batch and on the mode.

    - ``batch_in_training``, ``batch_in_evaluation``: how far the outputs for the first FEW images
      are from those of the same images among all, in either mode;
    - ``batch_before_relu``: the same, in training, of what goes into each ReLU, while every ReLU
      puts out the same for an image in either batch;
    - ``by_channel``: whether a moving average is as long as some ReLU has channels;
    - ``modes``: how far the outputs for all of them in evaluation are from those in training;
    - ``right_in_training``, ``right_in_evaluation``: the share of the images that it classifies
      correctly in either mode.

    Distances are relative to the spread of the outputs. To call a model in training mode moves its
    moving averages, so that comes last.
    """
    evaluated = [np.asarray(model(part, training=False)) for part in (images[:FEW], images)]
    few = np.asarray(model(images[:FEW], training=True))
    of_all, from_relus, trained = trained_with_relus(model, images)
    of_few, _, _ = trained_with_relus(model, images[:FEW], [one[:FEW] for one in from_relus])
    widths = {
        variable.shape[-1] for variable in model.non_trainable_variables if variable.shape.rank
    }
    return {
        "batch_in_training": apart(few, trained[:FEW], trained),
        "batch_in_evaluation": apart(evaluated[0], evaluated[1][:FEW], trained),
        "batch_before_relu": [
            apart(one, other[:FEW], other) for one, other in zip(of_few, of_all, strict=True)
        ],
        "by_channel": any(one.shape[-1] in widths for one in of_all),
        "modes": apart(evaluated[1], trained, trained),
        "right_in_training": float(np.mean(trained.argmax(axis=-1) == labels)),
        "right_in_evaluation": float(np.mean(evaluated[1].argmax(axis=-1) == labels)),
    }


def trained_with_relus(
    model: tf.keras.Model, images: np.ndarray, instead: Sequence[np.ndarray] = ()
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Return what goes into each ReLU in training mode, what comes out of each, and the outputs.

    Where ``instead`` says what comes out of each, the batch acts on what goes into a ReLU only
    through what lies between the ReLUs before it and itself.
    """

    # Only in a graph may a callback replace what an operation puts out.
    @tf.function
    def forward() -> tuple[list[tf.Tensor], list[tf.Tensor], tf.Tensor]:
        into_relus: list[tf.Tensor] = []
        from_relus: list[tf.Tensor] = []
        own_graph = tf.compat.v1.get_default_graph()

        def note(
            kind: str,
            inputs: Any,
            attributes: Any,
            results: Any,
            op_name: Any = None,
            graph: Any = None,
        ) -> list[tf.Tensor] | None:
            if kind != "Relu" or graph is not own_graph:
                return None
            into_relus.append(inputs[0])
            from_relus.append(tf.constant(instead[len(from_relus)]) if instead else results[0])
            return from_relus[-1:]

        op_callbacks.add_op_callback(note)
        try:
            return into_relus, from_relus, model(images, training=True)
        finally:
            op_callbacks.remove_op_callback(note)

    return tf.nest.map_structure(np.asarray, forward())


def apart(outputs: np.ndarray, others: np.ndarray, all_outputs: np.ndarray) -> float:
    """Return the distance of outputs from others, relative to the spread of all."""
    spread = max(float(np.std(all_outputs)), 1e-30)
    return float(np.sqrt(np.mean((outputs - others) ** 2))) / spread
