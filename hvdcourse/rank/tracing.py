"""Has TensorFlow make the graphs of a short training sooner: they take most of its time."""

import functools
from collections.abc import Callable
from typing import Any

import horovod.tensorflow
import tensorflow as tf
from tensorflow.python.autograph.core import config


@functools.cache
def trace_quickly() -> None:
    """Make graphs sooner from now on, wherever a script makes them."""
    leave_horovod_unconverted()
    create_state_once()


def leave_horovod_unconverted() -> None:
    """Keep AutoGraph from what Horovod defines.

    AutoGraph reads and rewrites every Python function that a graph is made of, anew in every
    process. Horovod's need no rewriting: they decide by Python's numbers, and by ``tf.cond``.
    https://www.tensorflow.org/api_docs/python/tf/autograph/experimental/do_not_convert
    """
    config.CONVERSION_RULES = (config.DoNotConvert("horovod"), *config.CONVERSION_RULES)
    # What Horovod itself makes a graph of is converted by any rule, unless told otherwise here.
    horovod.tensorflow._make_subgraph = functools.partial(tf.function, autograph=False)


def create_state_once() -> None:
    """Have Keras create the state of metrics and optimizers without a second graph.

    It does so in the first step. Of a function that has created variables TensorFlow makes another
    graph, which creates none, though these are created outside of the graph anyway.
    """
    for kind, names in _CREATORS.items():
        for name in names:
            setattr(kind, name, created_outside(getattr(kind, name)))


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
