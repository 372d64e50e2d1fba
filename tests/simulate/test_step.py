"""A step at its limits, and what Horovod's cycle and fusion buffer do in it."""

import math
from collections import deque
from itertools import pairwise

import pytest

from hvdcourse.errors import BadInput
from hvdcourse.simulate.algorithms import ALGORITHMS, ring
from hvdcourse.simulate.links import LINKS, Cluster, Link, flat
from hvdcourse.simulate.step import Horovod, Layer, expected_slowest, fuse, simulate

LAYERS = [Layer(f"layer{number}", 65536, 1e-3) for number in range(60)]
FORWARD, COMPUTE = 0.03, 0.09
GIGABIT = Link(5e-5, 125e6)
CYCLE = Horovod().cycle


def step(link=GIGABIT, ranks=4, algorithm="ring", layers=LAYERS, **settings):
    """Return a step of the 60 layers."""
    return simulate(layers, FORWARD, flat(ranks, link), Horovod(**settings), algorithm)


def test_one_rank_communicates_nothing():
    alone = step(ranks=1)
    assert alone.seconds == alone.compute == pytest.approx(COMPUTE)
    assert alone.buckets == []


def test_without_any_cost_a_step_is_its_computing():
    free = step(Link(0, math.inf), cycle=0)
    assert free.seconds == pytest.approx(COMPUTE)
    # Horovod still sees the last gradient at its next wake-up only.
    assert 0 < step(Link(0, math.inf)).exposed <= CYCLE


def test_without_fusion_each_gradient_is_reduced_on_its_own():
    assert len(step(fusion_bytes=0).buckets) == len(LAYERS)


def test_fusion_is_worth_it_where_latency_counts():
    slow = Link(1e-3, 125e6)
    assert step(slow).seconds < step(slow, fusion_bytes=0).seconds


@pytest.mark.parametrize("threshold", [65536, 200_000, 1_000_000])
def test_no_bucket_is_above_the_threshold(threshold):
    buckets = step(Link(0, 1e6), fusion_bytes=threshold).buckets
    assert max(bucket.bytes for bucket in buckets) == threshold // 65536 * 65536


def test_gradients_keep_their_order_and_a_large_one_goes_alone():
    sizes = [3, 3, 9, 1, 1]
    layers = deque(Layer(str(number), size, 0) for number, size in enumerate(sizes))
    buckets = [[layer.bytes for layer in bucket] for bucket in fuse(layers, 6, 1)]
    assert buckets == [[3, 3], [9], [1, 1]]


@pytest.mark.parametrize("fusion_bytes", [0, 300_000, Horovod().fusion_bytes])
def test_every_gradient_travels_once_after_it_was_computed(fusion_bytes):
    whole = step(fusion_bytes=fusion_bytes)
    names = [name for bucket in whole.buckets for name in bucket.layers]
    assert names == [layer.name for layer in reversed(LAYERS)]
    now = 0.0
    for bucket in whole.buckets:
        # The background thread does one thing at a time.
        assert max(now, *(whole.ready[name] for name in bucket.layers)) <= bucket.begun
        assert bucket.begun < bucket.sent
        now = bucket.sent
    assert whole.seconds == now


def test_a_bucket_takes_what_its_algorithm_takes():
    first, *_ = step().buckets
    assert first.sent - first.begun == pytest.approx(ring(first.bytes, flat(4, GIGABIT)))


@pytest.mark.parametrize("megabits", [10, 100, 1000, 10_000])
def test_overlap_never_makes_a_step_slower(megabits):
    link = Link(5e-5, megabits * 1e6 / 8)
    # All gradients at the end of the backward pass: nothing can hide.
    late = [Layer(layer.name, layer.bytes, 0.0) for layer in LAYERS]
    late[-1] = Layer("last", 65536, COMPUTE - FORWARD)
    assert step(link).seconds <= step(link, layers=late).seconds + CYCLE


def test_a_faster_link_never_makes_a_step_slower():
    times = [step(Link(5e-5, 1e6 * 2**power)).seconds for power in range(14)]
    # Where in its cycle Horovod is when the last gradient comes may cost a cycle.
    assert all(faster <= slower + CYCLE for slower, faster in pairwise(times))
    assert times[0] > 10 * times[-1]


def test_half_of_the_bytes_travel_in_16_bits():
    half, full = step(fp16=True), step()
    assert 2 * sum(b.bytes for b in half.buckets) == sum(b.bytes for b in full.buckets)
    assert half.seconds < full.seconds


def test_a_longer_cycle_makes_fewer_and_larger_buckets():
    assert len(step(cycle=20e-3).buckets) < len(step(cycle=5e-3).buckets)


def test_16384_gpus_cost_as_many_events_as_2(monkeypatch):
    calls = []

    def counted(size, cluster):
        calls.append(cluster.ranks)
        return ring(size, cluster)

    monkeypatch.setitem(ALGORITHMS, "counted", counted)
    for hosts in (2, 4096):
        cluster = Cluster(hosts, 4, LINKS["nvlink"], GIGABIT)
        simulate(LAYERS, FORWARD, cluster, Horovod(fusion_bytes=0), "counted")
    assert calls == [8] * 60 + [16384] * 60


def test_the_slowest_of_many_is_expected_from_measured_times():
    times = [0.1, 0.3, 0.2]
    assert expected_slowest(times, 1) == pytest.approx(0.2)
    # Of 9 pairs of draws 1 has the maximum 0.1, 3 have 0.2 and 5 have 0.3.
    assert expected_slowest(times, 2) == pytest.approx((0.1 + 3 * 0.2 + 5 * 0.3) / 9)
    assert expected_slowest(times, 10_000) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("layers", "forward"),
    [([], 1), (LAYERS, -1), (LAYERS, math.nan), ([Layer("a", -1, 0)], 1)],
)
def test_a_step_without_layers_or_with_wrong_numbers_is_refused(layers, forward):
    with pytest.raises(BadInput, match="a step needs layers"):
        simulate(layers, forward, flat(2, GIGABIT))


@pytest.mark.parametrize(
    "setting", [{"fusion_bytes": -1}, {"cycle": math.inf}, {"negotiation": -1}, {"cycle": -1}]
)
def test_wrong_settings_of_horovod_are_named(setting):
    with pytest.raises(BadInput, match=next(iter(setting))):
        Horovod(**setting)


def test_the_slowest_of_nothing_is_refused():
    with pytest.raises(BadInput, match="the slowest rank needs"):
        expected_slowest([], 2)
