"""What the optimizers that scale every layer's step by itself share: arguments, layers, slots."""

import math
import re
from collections.abc import Sequence
from numbers import Real
from typing import Any, TypeAlias

import tensorflow as tf

Schedule: TypeAlias = tf.keras.optimizers.schedules.LearningRateSchedule

# Patterns for `exclude_from_weight_decay`: Keras' names for a bias, and for the scale and the
# offset of a normalization layer.
BIAS_AND_NORM = (r"\bbias:", r"\bgamma:", r"\bbeta:")


class LayerwiseOptimizer(tf.keras.optimizers.Optimizer):
    """An optimizer with a first moment per weight, and further numbers per layer.

    A layer is one variable: a kernel and its bias are two. Variables of 16 bits have slots of 32
    bits and are updated in 32, since squares of their gradients would underflow; only the new
    weights are rounded.

    Variables that were excluded as objects, by ``exclude_from_weight_decay(var_list=...)``, are not
    in the configuration, so that Horovod's ``DistributedOptimizer`` loses them: exclude names.

    A subclass has ``add_layer``, ``update_step`` and, for its own arguments, ``get_config``.
    """

    def __init__(
        self,
        learning_rate: float | Schedule,
        beta_1: float,
        beta_2: float,
        epsilon: float,
        weight_decay: float | None,
        exclude_from_weight_decay: Sequence[str],
        **keras_arguments: Any,
    ):
        if not isinstance(learning_rate, tf.keras.optimizers.schedules.LearningRateSchedule):
            check_number("learning_rate", learning_rate)
        check_number("beta_1", beta_1, below=1)
        check_number("beta_2", beta_2, below=1)
        check_number("epsilon", epsilon, zero=False)
        weight_decay = 0.0 if weight_decay is None else weight_decay
        check_number("weight_decay", weight_decay)
        check_patterns("exclude_from_weight_decay", exclude_from_weight_decay)
        super().__init__(weight_decay=weight_decay, **keras_arguments)
        self._learning_rate = self._build_learning_rate(learning_rate)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        # Keras' method `exclude_from_weight_decay` writes the same attribute.
        self._exclude_from_weight_decay_names = list(exclude_from_weight_decay)

    def build(self, var_list: Sequence[tf.Variable]) -> None:
        """Create the slots of all variables; Keras calls it at the first step."""
        super().build(var_list)
        if getattr(self, "_built", False):
            return
        self._layer_names = unique_names(var_list)
        self._moments = []
        for variable in var_list:
            self._moments.append(self.add_slot(variable, "m", variable.shape))
            self.add_layer(variable)
        self._built = True

    def add_layer(self, variable: tf.Variable) -> None:
        """Create what the subclass keeps for a variable beside its first moment."""
        raise NotImplementedError

    def add_slot(
        self,
        variable: tf.Variable,
        name: str,
        shape: Sequence[int] = (),
        dtype: tf.DType | None = None,
    ) -> tf.Variable:
        """Create zeros for a variable, which checkpoints and broadcasts then contain."""
        with tf.distribute.get_strategy().extended.colocate_vars_with(variable):
            return self.add_variable(
                shape, dtype or slot_dtype(variable), name=f"{name}/{plain_name(variable)}"
            )

    def layer_index(self, variable: tf.Variable) -> int:
        """Return a variable's position among those that the optimizer was built for."""
        return self._index_dict[self._var_key(variable)]

    def weight_decay_of(self, variable: tf.Variable) -> float:
        """Return the weight decay of a variable: 0 if it is excluded."""
        return self.weight_decay if self._use_weight_decay(variable) else 0.0

    def _apply_weight_decay(self, variables: Sequence[tf.Variable]) -> None:
        """Leave the weights alone: both algorithms have the decay inside their update."""

    def get_config(self) -> dict[str, Any]:
        """Return all arguments; Horovod's ``DistributedOptimizer`` makes its copy of them."""
        return {
            **super().get_config(),
            "learning_rate": self._serialize_hyperparameter(self._learning_rate),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "exclude_from_weight_decay": list(self._exclude_from_weight_decay_names),
        }


def check_number(argument: str, value: Any, below: float = math.inf, zero: bool = True) -> None:
    """Raise a ValueError unless the value is a number from 0 to below ``below``."""
    number = float(value) if isinstance(value, Real) else math.nan
    if 0 <= number < below and (zero or number > 0):
        return
    limits = "at least 0" if zero else "above 0"
    limits += f" and below {below}" if below < math.inf else " and finite"
    raise ValueError(f"{argument} must be a number {limits}; got {value!r}")


def check_patterns(argument: str, patterns: Any) -> None:
    """Raise a ValueError unless the patterns are a list or tuple of regular expressions."""
    if not isinstance(patterns, list | tuple) or not all(isinstance(row, str) for row in patterns):
        raise ValueError(f"{argument} must be a list or tuple of patterns; got {patterns!r}")
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{argument} has a bad pattern, {pattern!r}: {error}") from None


def plain_name(variable: tf.Variable) -> str:
    """Return a variable's name without the output's number: ``dense/kernel``."""
    return variable.name.split(":")[0]


def unique_names(variables: Sequence[tf.Variable]) -> tuple[str, ...]:
    """Return the variables' names; a name that is taken gets a number: ``dense/kernel_1``."""
    names: list[str] = []
    for variable in variables:
        plain = name = plain_name(variable)
        number = 0
        while name in names:
            number += 1
            name = f"{plain}_{number}"
        names.append(name)
    return tuple(names)


def slot_dtype(variable: tf.Variable) -> tf.DType:
    """Return the type that a variable's slots have and its update is computed in."""
    return tf.float32 if variable.dtype.size < 4 else variable.dtype


def read_as(dtype: tf.DType, value: tf.Variable | tf.Tensor | tf.IndexedSlices) -> tf.Tensor:
    """Return a variable's value now, or a gradient, also a sparse one, as a dense tensor.

    ``tf.cast`` alone may return the variable itself.
    """
    return tf.cast(tf.convert_to_tensor(value), dtype)
