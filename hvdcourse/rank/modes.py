"""How what a model computes depends on the batch, and on whether it trains or evaluates."""

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
    - ``batch_before_relu``: the same, in training, of what goes into each ReLU;
    - ``by_channel``: whether a moving average is as long as some ReLU has channels;
    - ``modes``: how far the outputs for all of them in evaluation are from those in training;
    - ``right_in_training``, ``right_in_evaluation``: the share of the images that it classifies
      correctly in either mode.

    Distances are relative to the spread of the outputs. To call a model in training mode moves its
    moving averages, so that comes last.
    """
    evaluated = [np.asarray(model(part, training=False)) for part in (images[:FEW], images)]
    (of_few, few), (of_all, trained) = (
        trained_with_relus(model, p) for p in (images[:FEW], images)
    )
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
    model: tf.keras.Model, images: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return what goes into each ReLU in training mode, and the outputs."""
    into_relus: list[np.ndarray] = []

    def note(kind: str, inputs: Any, *_: Any, graph: Any = None, **__: Any) -> None:
        if kind == "Relu" and graph is None:
            into_relus.append(inputs[0].numpy())

    op_callbacks.add_op_callback(note)
    try:
        outputs = np.asarray(model(images, training=True))
    finally:
        op_callbacks.remove_op_callback(note)
    return into_relus, outputs


def apart(outputs: np.ndarray, others: np.ndarray, all_outputs: np.ndarray) -> float:
    """Return the distance of outputs from others, relative to the spread of all."""
    spread = max(float(np.std(all_outputs)), 1e-30)
    return float(np.sqrt(np.mean((outputs - others) ** 2))) / spread
