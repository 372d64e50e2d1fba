"""Optimizers for large batches: ``LAMB`` and ``NovoGrad``."""

import math
import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hvdcourse.training.layerwise import (
    BIAS_AND_NORM,
    LayerwiseOptimizer,
    Schedule,
    check_patterns,
    read_as,
    slot_dtype,
)

__all__ = ["BIAS_AND_NORM", "LAMB", "NovoGrad"]


@tf.keras.utils.register_keras_serializable(package="hvdcourse")
class LAMB(LayerwiseOptimizer):
    r"""Adam whose step is, in every layer, a set part of the size of the layer's weights.

    Algorithm 2 of You et al., arXiv:1904.00962. For a layer's weights x and gradient g, both of
    the layer's shape, and its t-th update, counted from 1::

        m ← β₁ m + (1 − β₁) g               first moment, of the layer's shape, 0 at first
        v ← β₂ v + (1 − β₂) g²              second moment, of the layer's shape, 0 at first
        r = m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + ε)
        u = r + λ x                         λ: weight decay
        x ← x − η (‖x‖ / ‖u‖) u             η: learning rate; ‖x‖ / ‖u‖: trust ratio

    So ‖Δx‖ = η ‖x‖ whatever the gradient's size. The paper's φ(‖x‖) is the identity here.

    Where implementations differ, this one

    - has the bias correction of the algorithm (some leave it out and rely on a warm-up);
    - has ε outside the root, as in the algorithm;
    - has the trust ratio 1 where ‖x‖ or ‖u‖ is zero, of which the paper says nothing: weights that
      start at zero take a step of Adam;
    - counts each layer's own updates as t, not the steps of the optimizer: a layer without a
      gradient keeps its state, and passes that Horovod gathers (``backward_passes_per_step``)
      count once;
    - treats a sparse gradient as the dense one that it stands for: moments and weights change in
      all rows.

    Args:
        learning_rate: η, a number or a ``LearningRateSchedule``.
        beta_1: β₁, from 0 to below 1.
        beta_2: β₂, from 0 to below 1.
        epsilon: ε, above 0.
        weight_decay: λ, at least 0.
        exclude_from_weight_decay: regular expressions; a variable in whose name one is found has no
            weight decay. ``BIAS_AND_NORM`` fits biases and normalization layers.
        exclude_from_layer_adaptation: likewise, for variables that have the trust ratio 1. None:
            the same as without weight decay. An empty list: no variable.
        name: the optimizer's name.
        **keras_arguments: what every Keras optimizer takes, such as ``global_clipnorm``.

    Raises:
        ValueError: an argument out of its range; the message names it.
    """

    def __init__(
        self,
        learning_rate: float | Schedule = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        weight_decay: float | None = 0.0,
        exclude_from_weight_decay: Sequence[str] = (),
        exclude_from_layer_adaptation: Sequence[str] | None = None,
        name: str = "LAMB",
        **keras_arguments: Any,
    ):
        if exclude_from_layer_adaptation is not None:
            check_patterns("exclude_from_layer_adaptation", exclude_from_layer_adaptation)
            exclude_from_layer_adaptation = list(exclude_from_layer_adaptation)
        super().__init__(
            learning_rate,
            beta_1,
            beta_2,
            epsilon,
            weight_decay,
            exclude_from_weight_decay,
            name=name,
            **keras_arguments,
        )
        self._exclude_from_layer_adaptation = exclude_from_layer_adaptation
        self._second_moments: list[tf.Variable] = []
        self._updates: list[tf.Variable] = []
        self._trust_ratios: list[tf.Variable | None] = []

    def add_layer(self, variable: tf.Variable) -> None:
        """Create the second moment, the number of updates and, if it adapts, the trust ratio."""
        self._second_moments.append(self.add_slot(variable, "v", variable.shape))
        self._updates.append(self.add_slot(variable, "updates", dtype=tf.int64))
        ratio = self.add_slot(variable, "trust_ratio") if self._adapts(variable) else None
        self._trust_ratios.append(ratio)

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Update one variable."""
        index = self.layer_index(variable)
        dtype = slot_dtype(variable)
        gradient, weights = read_as(dtype, gradient), read_as(dtype, variable)
        update = self._adam_direction(index, gradient)
        decay = self.weight_decay_of(variable)
        if decay:
            update += decay * weights
        rate = read_as(dtype, self.learning_rate)
        ratio = self._trust_ratios[index]
        if ratio is not None:
            rate = rate * ratio.assign(trust_ratio(weights, update))
        variable.assign(tf.cast(weights - rate * update, variable.dtype))

    def _adam_direction(self, index: int, gradient: tf.Tensor) -> tf.Tensor:
        """Return r of the class's formulas, with the moments moved on by the gradient."""
        first, second = self._moments[index], self._second_moments[index]
        step = tf.cast(self._updates[index].assign_add(1), first.dtype)
        first.assign(self.beta_1 * first + (1 - self.beta_1) * gradient)
        second.assign(self.beta_2 * second + (1 - self.beta_2) * tf.square(gradient))
        root = tf.sqrt(second / bias_correction(self.beta_2, step))
        return first / bias_correction(self.beta_1, step) / (root + self.epsilon)

    def _adapts(self, variable: tf.Variable) -> bool:
        patterns = self._exclude_from_layer_adaptation
        if patterns is None:
            return self._use_weight_decay(variable)
        return not any(re.search(pattern, variable.name) for pattern in patterns)

    def trust_ratios(self) -> dict[str, float]:
        """Return the trust ratio of every layer at the last step, by the variable's name.

        Excluded layers are left out. Call it between steps, for example in a callback's
        ``on_train_batch_end``; nothing is computed for it. Before the first step it is empty.
        """
        rows = zip(getattr(self, "_layer_names", ()), self._trust_ratios, strict=True)
        return {name: float(ratio) for name, ratio in rows if ratio is not None}

    def get_config(self) -> dict[str, Any]:
        """Return all arguments; Horovod's ``DistributedOptimizer`` makes its copy of them."""
        patterns = self._exclude_from_layer_adaptation
        excluded = patterns if patterns is None else list(patterns)
        return {**super().get_config(), "exclude_from_layer_adaptation": excluded}


@tf.keras.utils.register_keras_serializable(package="hvdcourse")
class NovoGrad(LayerwiseOptimizer):
    r"""Momentum on gradients that are divided, in every layer, by a running norm of the gradient.

    Algorithm 1 of Ginsburg et al., arXiv:1905.11286. For a layer's weights w and gradient g, both
    of the layer's shape::

        v ← β₂ v + (1 − β₂) ‖g‖²            second moment, one number; at first v = ‖g‖²
        m ← β₁ m + (g / (√v + ε) + d w)     first moment, of the layer's shape; d: weight decay
        w ← w − λ m                         λ: learning rate

    There is no bias correction: v starts at ‖g‖², not at 0. Where implementations differ, this one

    - starts v at the layer's first gradient that is not zero. One that starts it at the
      optimizer's first step takes a step 1 / √(1 − β₂) times too large in a layer whose gradient is
      zero there, as behind a weight that starts at zero, or that is trained only later;
    - has ε outside the root, also at first, where the paper has none;
    - treats a sparse gradient as the dense one that it stands for: momentum and weight decay act in
      all rows, not only in those that the batch used;
    - has no variant with the largest v so far (AMSGrad).

    Args:
        learning_rate: λ, a number or a ``LearningRateSchedule``.
        beta_1: β₁, from 0 to below 1.
        beta_2: β₂, from 0 to below 1.
        epsilon: ε, above 0.
        weight_decay: d, at least 0.
        exclude_from_weight_decay: regular expressions; a variable in whose name one is found has no
            weight decay. ``BIAS_AND_NORM`` fits biases and normalization layers.
        name: the optimizer's name.
        **keras_arguments: what every Keras optimizer takes, such as ``global_clipnorm``.

    Raises:
        ValueError: an argument out of its range; the message names it.
    """

    def __init__(
        self,
        learning_rate: float | Schedule = 0.01,
        beta_1: float = 0.95,
        beta_2: float = 0.98,
        epsilon: float = 1e-8,
        weight_decay: float | None = 0.0,
        exclude_from_weight_decay: Sequence[str] = (),
        name: str = "NovoGrad",
        **keras_arguments: Any,
    ):
        super().__init__(
            learning_rate,
            beta_1,
            beta_2,
            epsilon,
            weight_decay,
            exclude_from_weight_decay,
            name=name,
            **keras_arguments,
        )
        self._second_moments: list[tf.Variable] = []

    def add_layer(self, variable: tf.Variable) -> None:
        """Create the second moment, one number."""
        self._second_moments.append(self.add_slot(variable, "v"))

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Update one variable."""
        index = self.layer_index(variable)
        dtype = slot_dtype(variable)
        gradient, weights = read_as(dtype, gradient), read_as(dtype, variable)
        first, second = self._moments[index], self._second_moments[index]
        starts = tf.equal(second, 0)
        squared_norm = tf.reduce_sum(tf.square(gradient))
        average = self.beta_2 * second + (1 - self.beta_2) * squared_norm
        second.assign(tf.where(starts, squared_norm, average))
        bracket = gradient / (tf.sqrt(second) + self.epsilon)
        decay = self.weight_decay_of(variable)
        if decay:
            bracket += decay * weights
        first.assign(self.beta_1 * first)
        first.assign_add(bracket)
        rate = read_as(dtype, self.learning_rate)
        variable.assign(tf.cast(weights - rate * first, variable.dtype))

    def second_moments(self) -> dict[str, float]:
        """Return v of every layer after the last step, by the variable's name.

        Call it between steps, for example in a callback's ``on_train_batch_end``; nothing is
        computed for it. Before the first step it is empty.
        """
        rows = zip(getattr(self, "_layer_names", ()), self._second_moments, strict=True)
        return {name: float(moment) for name, moment in rows}


def trust_ratio(weights: tf.Tensor, update: tf.Tensor) -> tf.Tensor:
    """Return the weights' norm over the update's, or 1 where either is zero."""
    weights_norm, update_norm = tf.norm(weights), tf.norm(update)
    positive = (weights_norm > 0) & (update_norm > 0)
    return tf.where(positive, weights_norm / update_norm, tf.ones_like(update_norm))


def bias_correction(beta: float, step: tf.Tensor) -> tf.Tensor | float:
    """Return 1 − betaᵗ, to the last bit also for a beta close to 1."""
    return -tf.math.expm1(step * math.log(beta)) if beta else 1.0
