"""A small network in NumPy whose backward pass hands out its gradients one by one."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from hvdcourse.errors import BadInput

# The loss is counted in small units, so that its gradients are small: many of those of real
# networks, too, lie where 16 bits have few digits or none (arXiv:1710.03740, figure 3).
LOSS_UNIT = 2.0**-17


def no_time(seconds: float) -> None:
    """Let no time go by."""


class LayeredNetwork:
    """Dense layers with tanh between them, all numbers of 32 bits.

    Args:
        widths: of the input and of each layer.
        seed: of the first weights, which are the same on all ranks.
        layer_seconds: what the backward pass of one layer is pretended to take. The forward pass,
            with one product of matrices a layer instead of two, takes half of it.
    """

    def __init__(self, widths: list[int], seed: int, layer_seconds: float = 0.0):
        if len(widths) < 2 or min(widths) < 1:
            raise BadInput(f"widths must be two numbers or more, from 1 on; got {widths}")
        generator = np.random.default_rng(seed)
        self.layer_seconds = layer_seconds
        self.layers = len(widths) - 1
        self.weights: dict[str, np.ndarray] = {}
        for number in range(1, self.layers + 1):
            shape = (widths[number - 1], widths[number])
            kernel = generator.normal(scale=shape[0] ** -0.5, size=shape)
            self.weights[f"layer_{number}/kernel"] = kernel.astype(np.float32)
            self.weights[f"layer_{number}/bias"] = np.zeros(shape[1], np.float32)

    @property
    def sizes(self) -> dict[str, int]:
        """The bytes of every gradient, by name, in the order of the layers."""
        return {name: weights.nbytes for name, weights in self.weights.items()}

    def backward(
        self, inputs: np.ndarray, targets: np.ndarray, compute: Callable[[float], None] = no_time
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Yield each gradient with its name as soon as it is ready, those of the last layer first.

        Args:
            inputs: of shape (samples, first width).
            targets: of shape (samples, last width).
            compute: is told the seconds that each layer takes, before its gradients are yielded.
        """
        outputs = [inputs]
        for number in range(1, self.layers + 1):
            compute(self.layer_seconds / 2)
            weights = self.weights[f"layer_{number}/kernel"], self.weights[f"layer_{number}/bias"]
            summed = outputs[-1] @ weights[0] + weights[1]
            outputs.append(np.tanh(summed) if number < self.layers else summed)
        # Half the mean of the squared errors, in LOSS_UNIT.
        delta = (outputs[-1] - targets) * np.float32(LOSS_UNIT / len(inputs))
        for number in range(self.layers, 0, -1):
            compute(self.layer_seconds)
            kernel, below = self.weights[f"layer_{number}/kernel"], outputs[number - 1]
            gradient = below.T @ delta
            yield f"layer_{number}/bias", delta.sum(axis=0)
            yield f"layer_{number}/kernel", gradient
            delta = (delta @ kernel.T) * (1 - below**2)

    def update(self, gradients: Mapping[str, np.ndarray], learning_rate: float) -> None:
        """Take one step of gradient descent, at this rate per LOSS_UNIT.

        Raises:
            BadInput: a gradient is missing, or has another shape than its weights.
        """
        for name, weights in self.weights.items():
            if name not in gradients:
                raise BadInput(f"the gradient of {name!r} is missing; return one for each name")
            if np.shape(gradients[name]) != weights.shape:
                raise BadInput(
                    f"the gradient of {name!r} has the shape {np.shape(gradients[name])}; its "
                    f"weights have {weights.shape}"
                )
            weights -= np.float32(learning_rate / LOSS_UNIT) * gradients[name]

    def all_weights(self) -> np.ndarray:
        """Return all weights as one vector, in the order of the layers."""
        return np.concatenate([weights.ravel() for weights in self.weights.values()])


def random_samples(
    widths: list[int], seed: int, step: int, ranks: list[int], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and targets of one step: ``count`` samples for each of these ranks."""
    generators = [np.random.default_rng([seed, step, rank]) for rank in ranks]
    inputs = [generator.normal(size=(count, widths[0])) for generator in generators]
    targets = [generator.normal(size=(count, widths[-1])) for generator in generators]
    return np.concatenate(inputs).astype(np.float32), np.concatenate(targets).astype(np.float32)
