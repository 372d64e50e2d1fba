"""What ranks hold: the ring and the collectives, followed number by number."""

import itertools

import numpy as np
import pytest

from hvdcourse.simulate.collectives import COLLECTIVES, collective, ring_states

SIZES = range(2, 7)


@pytest.mark.parametrize("ranks", SIZES)
def test_the_ring_ends_with_the_sum_on_every_rank(ranks):
    states = ring_states(ranks)
    assert len(states) == 1 + 2 * (ranks - 1)
    assert (states[-1].held == states[0].held.sum(axis=0)).all()
    assert (states[-1].parts == ranks).all()


@pytest.mark.parametrize("ranks", SIZES)
def test_in_each_step_every_rank_gets_one_chunk_from_the_rank_before(ranks):
    states = ring_states(ranks)
    for number, (before, after) in enumerate(itertools.pairwise(states)):
        assert sorted(rank for rank, _ in after.arrived) == list(range(ranks))
        assert {(r, c) for r, c in np.argwhere(before.held != after.held)} <= after.arrived
        for rank, chunk in after.arrived:
            own = before.held[rank, chunk] if number < ranks - 1 else 0
            assert after.held[rank, chunk] == before.held[rank - 1, chunk] + own


def test_after_scatter_reduce_each_rank_holds_one_full_sum():
    state = ring_states(4)[3]
    assert state.title == "scatter-reduce 3"
    assert [list(row).index(4) for row in state.parts] == [1, 2, 3, 0]


def values(rows):
    return [[value for value, _ in row] for row in rows]


def flat(rows):
    return [value for row in rows for value in row]


@pytest.mark.parametrize("ranks", SIZES)
def test_the_collectives_give_every_rank_what_they_say(ranks):
    shown = {name: collective(name, ranks) for name in COLLECTIVES}
    before, after = (
        {n: values(getattr(c, w)) for n, c in shown.items()} for w in ("before", "after")
    )
    assert after["allreduce"] == [list(np.sum(before["allreduce"], axis=0))] * ranks
    assert after["allgather"] == [flat(before["allgather"])] * ranks
    root = int(shown["broadcast"].call.split()[-1])
    assert after["broadcast"] == [before["broadcast"][root]] * ranks
    assert after["alltoall"] == np.transpose(before["alltoall"]).tolist()
    assert flat(after["reducescatter"]) == list(np.sum(before["reducescatter"], axis=0))


@pytest.mark.parametrize("ranks", SIZES)
def test_a_value_names_the_rank_that_it_comes_from(ranks):
    for name in COLLECTIVES:
        shown = collective(name, ranks)
        assert all(origin == r for r, row in enumerate(shown.before) for _, origin in row)
        for value, origin in (box for row in shown.after for box in row):
            if origin is not None:
                assert value in values(shown.before)[origin]
