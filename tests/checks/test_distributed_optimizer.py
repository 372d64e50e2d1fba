"""Whatever distributed_optimizer.py's check draws, its steps get faster and mistakes are told."""

import random

import numpy as np
import pytest

from hvdcourse.checks.exercises.optimizer_settings import RANKS, Setting, arguments
from hvdcourse.checks.exercises.optimizer_trainings import (
    SHARE_WITH_FEEDBACK,
    TOLERANCE,
    distance_from_single_process,
    lost_of_another_bucket,
    mean,
    rounding_alone,
    samples,
    total,
    weights_after,
)


def drawn(seed):
    random.seed(seed)
    return Setting.from_arguments(arguments(), RANKS)


# Some draw layers so narrow that no bucket is large enough.
@pytest.mark.parametrize("seed", [14, 127, 2130, 2209])
def test_layers_that_fill_no_bucket_are_drawn_again(seed):
    assert drawn(seed).limit > 2500


def filled_from_the_end(setting):
    """Return the buckets of which the last ones are the fullest: no fewer leave later."""
    sizes, buckets = setting.network().sizes, [[]]
    for name in reversed(setting.ready):
        if sum(sizes[other] for other in buckets[0]) + sizes[name] > setting.limit and buckets[0]:
            buckets.insert(0, [])
        buckets[0].insert(0, name)
    return buckets


@pytest.mark.parametrize("seed", range(100))
def test_every_setting_makes_each_way_faster_however_the_buckets_are_filled(seed):
    setting = drawn(seed)
    sizes, order = setting.network().sizes, list(setting.ready)
    assert all(size // 4 % 2 and size // 4 % 3 for name, size in sizes.items() if "bias" in name)
    assert max(sizes.values()) > setting.limit
    for buckets in (setting.buckets(), filled_from_the_end(setting)):
        assert [name for bucket in buckets for name in bucket] == order
        assert len(buckets) == len(setting.buckets())
        full = [sum(sizes[name] for name in bucket) for bucket in buckets]
        ready = [setting.ready[bucket[-1]] for bucket in buckets]
        overlapped = setting.overlapped(full, ready)
        assert setting.seconds(sizes.values()) > setting.seconds(full)
        assert setting.seconds([sum(full)]) > overlapped
        assert overlapped > setting.overlapped([size // 2 for size in full], ready)


@pytest.mark.parametrize("seed", range(100))
def test_every_setting_tells_buckets_that_are_closed_too_late(seed):
    setting = drawn(seed)
    sizes, buckets, full = setting.network().sizes, [[]], 0
    for name in setting.ready:
        if full >= setting.limit:
            buckets.append([])
            full = 0
        buckets[-1].append(name)
        full += sizes[name]
    assert any(
        len(bucket) > 1 and sum(sizes[name] for name in bucket) > setting.limit
        for bucket in buckets
    )


@pytest.mark.parametrize("seed", range(100))
def test_every_setting_tells_a_gradient_that_just_fits_and_is_left_out(seed):
    setting = drawn(seed)
    sizes, count, free = setting.network().sizes, 0, 0
    for name in setting.ready:
        if sizes[name] >= free:
            count, free = count + 1, setting.limit
        free -= sizes[name]
    assert count > len(setting.buckets())


def with_feedback(setting, kept, place=lambda number, buffer: number):
    """Return the weights after a training that keeps, at a place, what ``kept`` makes of a loss."""
    network, lost = setting.network(), {}
    for step in range(setting.steps):
        own = [dict(network.backward(*samples(setting, step, rank))) for rank in range(RANKS)]
        means = {name: np.empty_like(gradient) for name, gradient in own[0].items()}
        for number, bucket in enumerate(setting.buckets()):
            halves = []
            for rank in range(RANKS):
                buffer = np.concatenate([own[rank][name].ravel() for name in bucket])
                key = rank, place(number, buffer)
                wanted = buffer + lost.get(key, np.float32(0))
                halves.append(wanted.astype(np.float16))
                lost[key] = kept(buffer, wanted, halves[-1])
            mean = np.sum(halves, axis=0).astype(np.float32) / RANKS
            ends = np.cumsum([means[name].size for name in bucket])
            for name, part in zip(bucket, np.split(mean, ends[:-1]), strict=True):
                means[name][...] = part.reshape(means[name].shape)
        network.update(means, setting.learning_rate)
    return network.all_weights()


# What learners keep instead of wanted - wire.
OTHER_LOSSES = {
    "the last one alone": lambda gradient, wanted, wire: gradient - wire,
    "subtracted": lambda gradient, wanted, wire: wire - wanted,
    "in 16 bits": lambda gradient, wanted, wire: (wanted - wire).astype(np.float16),
    "none": lambda gradient, wanted, wire: np.zeros_like(wanted),
}


@pytest.mark.parametrize("seed", range(12))
def test_every_setting_tells_the_error_that_is_fed_back_from_the_one_that_is_not(seed):
    setting = drawn(seed)
    allowed = SHARE_WITH_FEEDBACK * rounding_alone(setting)
    right = with_feedback(setting, lambda gradient, wanted, wire: wanted - wire)
    # Both ways there is room for a quarter.
    assert distance_from_single_process(right, setting) < 0.75 * allowed
    for other in OTHER_LOSSES.values():
        weights = with_feedback(setting, other)
        assert distance_from_single_process(weights, setting) > 1.25 * allowed
        assert not lost_of_another_bucket(weights, setting)


@pytest.mark.parametrize("seed", range(12))
def test_every_setting_tells_a_bucket_from_another_one_that_is_equally_long(seed):
    setting = drawn(seed)
    mixed_up = with_feedback(
        setting, lambda gradient, wanted, wire: wanted - wire, lambda number, buffer: buffer.size
    )
    allowed = SHARE_WITH_FEEDBACK * rounding_alone(setting)
    assert distance_from_single_process(mixed_up, setting) > 1.25 * allowed
    assert "whose buckets are equally long" in lost_of_another_bucket(mixed_up, setting)


@pytest.mark.parametrize("seed", range(12))
def test_every_setting_tells_means_from_sums_and_from_a_ranks_own_gradients(seed):
    setting = drawn(seed)
    everyone = tuple(range(RANKS))
    assert (
        distance_from_single_process(weights_after(setting, mean, everyone), setting)
        < TOLERANCE / 10
    )
    for combine, ranks in ((total, everyone), (mean, (0,)), (mean, (2,))):
        assert (
            distance_from_single_process(weights_after(setting, combine, ranks), setting)
            > 100 * TOLERANCE
        )
