"""The network in NumPy: its gradients are those of differences, and come last layer first."""

import numpy as np
import pytest

from hvdcourse.errors import BadInput
from hvdcourse.training.layered import LOSS_UNIT, LayeredNetwork, random_samples

WIDTHS = [4, 6, 5, 3]


def loss(network, inputs, targets):
    """Return half the mean squared error, in 64 bits."""
    values = inputs.astype(np.float64)
    for number in range(1, network.layers + 1):
        values = values @ network.weights[f"layer_{number}/kernel"].astype(np.float64)
        values = values + network.weights[f"layer_{number}/bias"]
        values = np.tanh(values) if number < network.layers else values
    return 0.5 * ((values - targets) ** 2).sum(axis=1).mean()


def test_gradients_are_those_of_differences():
    network = LayeredNetwork(WIDTHS, seed=3)
    samples = random_samples(WIDTHS, 3, 0, [0, 1], 4)
    for name, gradient in network.backward(*samples):
        weights = network.weights[name]
        for place in np.ndindex(weights.shape):
            middle = weights[place]
            losses = []
            for value in (middle - 0.01, middle + 0.01):
                weights[place] = value
                losses.append((loss(network, *samples), float(weights[place])))
            weights[place] = middle
            slope = (losses[1][0] - losses[0][0]) / (losses[1][1] - losses[0][1])
            assert gradient[place] / LOSS_UNIT == pytest.approx(slope, rel=2e-3, abs=2e-4)


def test_gradients_come_last_layer_first_and_time_goes_by_before_each_layer():
    network, clock = LayeredNetwork(WIDTHS, seed=1, layer_seconds=2.0), []
    samples = random_samples(WIDTHS, 1, 0, [0], 2)
    seen = [(name, sum(clock)) for name, _ in network.backward(*samples, clock.append)]
    assert [name for name, _ in seen] == list(reversed(network.sizes))
    # The forward pass takes 3 seconds.
    assert [seconds for _, seconds in seen] == [5, 5, 7, 7, 9, 9]


def test_an_update_goes_down():
    network = LayeredNetwork(WIDTHS, seed=2)
    samples = random_samples(WIDTHS, 2, 0, [0], 8)
    before = loss(network, *samples)
    network.update(dict(network.backward(*samples)), learning_rate=0.1)
    assert loss(network, *samples) < before


def test_each_rank_has_samples_of_its_own_and_one_process_has_all():
    parts = [random_samples(WIDTHS, 5, 2, [rank], 3) for rank in range(3)]
    together = random_samples(WIDTHS, 5, 2, [0, 1, 2], 3)
    for kind in (0, 1):
        assert np.array_equal(np.concatenate([part[kind] for part in parts]), together[kind])
    assert len({part[0].tobytes() for part in parts}) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda gradients: gradients.pop("layer_2/bias"), "of 'layer_2/bias' is missing"),
        (
            lambda gradients: gradients.update({"layer_1/bias": np.ones(1)}),
            r"of 'layer_1/bias' has the shape \(1,\); its weights have \(6,\)",
        ),
    ],
)
def test_gradients_that_do_not_fit_are_refused(change, said):
    network = LayeredNetwork(WIDTHS, seed=2)
    gradients = dict(network.backward(*random_samples(WIDTHS, 2, 0, [0], 2)))
    change(gradients)
    with pytest.raises(BadInput, match=said):
        network.update(gradients, 0.1)


@pytest.mark.parametrize("widths", [[3], [3, 0]])
def test_widths_that_make_no_network_are_refused(widths):
    with pytest.raises(BadInput, match="widths must be two numbers or more"):
        LayeredNetwork(widths, 1)
