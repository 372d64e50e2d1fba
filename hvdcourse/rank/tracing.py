"""Has TensorFlow do less about the graphs of a short training: they take most of its time."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf


@functools.cache
def create_state_once() -> None:
    """Have Keras create the state of metrics and optimizers without a second graph.

    It does so in the first step. Of a function that has created variables TensorFlow makes another
    graph, which creates none, though these are created outside of the graph anyway.
    """
    for kind, names in _CREATORS.items():
        for name in names:
            setattr(kind, name, created_outside(getattr(kind, name)))


def run_graphs_as_made() -> None:
    """Have TensorFlow run its graphs without rewriting them first.

    It does so to run them faster, and in a training of some dozen steps that never pays: of a
    rank's processor time it takes a tenth. See https://www.tensorflow.org/guide/graph_optimization.
    """
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


_CREATORS = {
    tf.keras.metrics.Metric: ("add_weight",),
    tf.keras.optimizers.Optimizer: ("add_variable", "add_variable_from_reference"),
}


def created_outside(add_variable: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``add_variable``; of what it creates outside of a graph no graph takes notice."""

    def create(next_creator: Callable[..., Any], **options: Any) -> tf.Variable:
        if tf.executing_eagerly():
            options["experimental_enable_variable_lifting"] = False
        return next_creator(**options)

    @functools.wraps(add_variable)
    def call(*arguments: Any, **options: Any) -> Any:
        with tf.variable_creator_scope(create):
            return add_variable(*arguments, **options)

    return call
