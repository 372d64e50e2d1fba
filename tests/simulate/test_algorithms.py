"""The closed forms take as long as the messages of which the algorithms consist, one by one."""

import math

import pytest

from hvdcourse.errors import BadInput
from hvdcourse.simulate.algorithms import (
    ALGORITHMS,
    double_tree,
    find_algorithm,
    fit_link,
    parameter_server,
    recursive_doubling,
    ring,
    ring_or_tree,
    tree,
    two_stage,
)
from hvdcourse.simulate.links import LINKS, Cluster, Link, flat

LINK = Link(1e-3, 1e6)
SIZE = 6000.0
RANKS = range(1, 10)


class Ranks:
    """Ranks with a clock each, and whose values each of them has added up, for each chunk."""

    def __init__(self, count, chunks=1):
        self.clocks = [0.0] * count
        self.sums = [[{rank} for _ in range(chunks)] for rank in range(count)]

    def send_at_once(self, messages, seconds):
        """Deliver messages (sender, receiver, chunk) that all leave in the same step."""
        clocks, sums = list(self.clocks), [[set(s) for s in each] for each in self.sums]
        for sender, receiver, chunk in messages:
            end = max(clocks[sender], clocks[receiver]) + seconds
            self.sums[receiver][chunk] |= sums[sender][chunk]
            for rank in (sender, receiver):
                self.clocks[rank] = max(self.clocks[rank], end)

    def seconds(self):
        """Return when the last rank has the sum of all, after seeing that each has it."""
        everyone = set(range(len(self.clocks)))
        assert all(chunk == everyone for chunks in self.sums for chunk in chunks)
        return max(self.clocks)


@pytest.mark.parametrize("count", RANKS)
def test_ring(count):
    ranks = Ranks(count, chunks=count)
    for step in range(2 * (count - 1)):
        messages = [(rank, (rank + 1) % count, (rank - step) % count) for rank in range(count)]
        ranks.send_at_once(messages, LINK.seconds(SIZE / count))
    assert ring(SIZE, flat(count, LINK)) == pytest.approx(ranks.seconds())


@pytest.mark.parametrize("count", RANKS)
def test_tree(count):
    ranks = Ranks(count)
    widths = [2**level for level in range(count.bit_length()) if 2**level < count]
    for width in widths:
        senders = [rank + width for rank in range(0, count, 2 * width) if rank + width < count]
        ranks.send_at_once([(rank, rank - width, 0) for rank in senders], LINK.seconds(SIZE))
    for width in reversed(widths):
        receivers = [rank + width for rank in range(0, count, 2 * width) if rank + width < count]
        ranks.send_at_once([(rank - width, rank, 0) for rank in receivers], LINK.seconds(SIZE))
    assert tree(SIZE, flat(count, LINK)) == pytest.approx(ranks.seconds())


@pytest.mark.parametrize("count", RANKS)
def test_recursive_doubling(count):
    ranks = Ranks(count)
    whole = 2 ** int(math.log2(count))
    extra = range(whole, count)
    ranks.send_at_once([(rank, rank - whole, 0) for rank in extra], LINK.seconds(SIZE))
    for level in range(int(math.log2(whole))):
        pairs = [(rank, rank ^ 2**level, 0) for rank in range(whole)]
        ranks.send_at_once(pairs, LINK.seconds(SIZE))
    ranks.send_at_once([(rank - whole, rank, 0) for rank in extra], LINK.seconds(SIZE))
    assert recursive_doubling(SIZE, flat(count, LINK)) == pytest.approx(ranks.seconds())


@pytest.mark.parametrize("count", RANKS)
def test_parameter_server(count):
    """All messages wait for the one link of the server; each then takes the latency."""
    link_is_free = arrived = 0.0
    for _ in range(count - 1):
        link_is_free += SIZE / LINK.bandwidth
        arrived = link_is_free + LINK.latency
    link_is_free, all_have_it = arrived, 0.0
    for _ in range(count - 1):
        link_is_free += SIZE / LINK.bandwidth
        all_have_it = link_is_free + LINK.latency
    assert parameter_server(SIZE, flat(count, LINK)) == pytest.approx(all_have_it)


@pytest.mark.parametrize(("hosts", "local"), [(1, 4), (2, 2), (4, 1), (3, 4)])
def test_two_stages_are_rings_of_the_parts(hosts, local):
    inside, between = Link(1e-4, 1e7), LINK
    shared = Link(between.latency, between.bandwidth / local)
    rings = ring(SIZE, flat(local, inside)) + ring(SIZE / local, flat(hosts, shared))
    assert two_stage(SIZE, Cluster(hosts, local, inside, between)) == pytest.approx(rings)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_rank_sends_nothing(name):
    assert find_algorithm(name)(SIZE, flat(1, LINK)) == 0


@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_algorithm_sends_faster_than_the_links_allow(name):
    cluster = Cluster(4, 4, LINKS["nvlink"], Link(0, 1e6))
    # Each host must send and receive what the other hosts do not have: Patarasuk and Yuan 2009.
    least = 2 * 3 / 4 * SIZE / 1e6
    assert find_algorithm(name)(SIZE, cluster) >= least * (1 - 1e-12)


def test_a_tree_is_for_many_ranks_and_a_ring_for_large_tensors():
    few, many = flat(8, LINK), flat(1024, LINK)
    assert ring_or_tree(1, many) == double_tree(1, many) < ring(1, many)
    assert ring_or_tree(1e9, few) == ring(1e9, few) < double_tree(1e9, few)


def test_an_unknown_algorithm_is_named():
    with pytest.raises(BadInput, match=r"algorithm must be one of ring, .*; got 'star'"):
        find_algorithm("star")


SIZES, COUNTS = [1e3, 1e6, 4e6, 1e3, 1e6, 4e6], [2, 2, 2, 4, 4, 4]


def test_a_fit_finds_the_link_and_the_constant_again():
    measured = [2e-3 + ring(s, flat(n, LINK)) for s, n in zip(SIZES, COUNTS, strict=True)]
    fit = fit_link(SIZES, measured, COUNTS)
    assert fit.link.latency == pytest.approx(LINK.latency)
    assert fit.link.bandwidth == pytest.approx(LINK.bandwidth)
    assert fit.constant == pytest.approx(2e-3)
    assert fit.seconds(2e6, 3) == pytest.approx(2e-3 + ring(2e6, flat(3, LINK)))


def test_on_one_number_of_ranks_the_constant_holds_the_latency():
    measured = [2e-3 + ring(size, flat(2, LINK)) for size in SIZES[:3]]
    fit = fit_link(SIZES[:3], measured, 2)
    assert fit.link.latency == 0
    assert fit.constant == pytest.approx(2e-3 + 2 * LINK.latency)


@pytest.mark.parametrize(
    ("sizes", "seconds"), [([], []), ([1], [1]), ([1, 2], [1]), ([1, 2], [0, 1]), ([1, 9], [2, 1])]
)
def test_what_cannot_be_fitted_is_refused(sizes, seconds):
    with pytest.raises(BadInput):
        fit_link(sizes, seconds, 2)
