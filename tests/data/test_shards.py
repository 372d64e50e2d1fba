import numpy as np
import pytest

from hvdcourse.data.shards import batches, shard, steps_per_epoch

COUNTS = (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 97, 100, 129, 360, 1437)
SIZES = (1, 2, 3, 4, 7, 8)
BATCH_SIZES = (1, 2, 3, 5, 16, 32, 1000)
CASES = [
    (count, size, batch_size)
    for count in COUNTS
    for size in SIZES
    for batch_size in BATCH_SIZES
    if count >= size
]


def all_ranks(count, size, batch_size, **options):
    return [batches(count, rank, size, batch_size, **options) for rank in range(size)]


@pytest.mark.parametrize("seed", [None, 3])
def test_the_ranks_together_see_every_sample_once(seed):
    for count, size, batch_size in CASES:
        everything = np.concatenate(
            [batch for mine in all_ranks(count, size, batch_size, seed=seed) for batch in mine]
        )
        assert sorted(everything) == list(range(count)), (count, size, batch_size)


def test_every_rank_has_the_same_number_of_steps():
    for count, size, batch_size in CASES:
        steps = {len(mine) for mine in all_ranks(count, size, batch_size)}
        assert steps == {steps_per_epoch(count, size, batch_size)}, (count, size, batch_size)


def test_no_batch_is_empty_or_too_large():
    for count, size, batch_size in CASES:
        lengths = [len(batch) for mine in all_ranks(count, size, batch_size) for batch in mine]
        limit = 2 if batch_size == 1 and count % size else batch_size
        assert 1 <= min(lengths) <= max(lengths) <= limit, (count, size, batch_size)


def test_batches_differ_by_at_most_one_sample_within_a_rank_and_between_ranks():
    for count, size, batch_size in CASES:
        lengths = np.array(
            [[len(batch) for batch in mine] for mine in all_ranks(count, size, batch_size)]
        )
        assert np.ptp(lengths, axis=0).max() <= 1, (count, size, batch_size)
        assert np.ptp(lengths, axis=1).max() <= 1, (count, size, batch_size)


def test_there_are_no_more_steps_than_full_batches_need():
    for count, size, batch_size in CASES:
        longest = -(-count // size)
        assert steps_per_epoch(count, size, batch_size) <= -(-longest // batch_size)


def test_steps_fall_by_the_number_of_ranks():
    assert [steps_per_epoch(60_000, size, 125) for size in (1, 2, 4, 8)] == [480, 240, 120, 60]


def test_the_case_in_which_full_batches_would_deadlock():
    ranks = all_ranks(65, 2, 32)
    assert [[len(batch) for batch in mine] for mine in ranks] == [[17, 16], [16, 16]]


def test_batches_of_one_sample_on_shards_of_different_length():
    ranks = all_ranks(5, 2, 1)
    assert [[len(batch) for batch in mine] for mine in ranks] == [[2, 1], [1, 1]]


def test_batches_are_the_shard_cut_up():
    options = {"seed": 1, "epoch": 4}
    np.testing.assert_array_equal(
        np.concatenate(batches(1437, 1, 3, 32, **options)), shard(1437, 1, 3, **options)
    )


def test_shards_are_int64_and_in_order_without_a_seed():
    mine = shard(7, 1, 3)
    assert mine.dtype == np.int64
    assert mine.tolist() == [1, 4]
    assert shard(7, 1, 3, seed=0).dtype == np.int64


def test_each_epoch_has_an_order_and_a_division_of_its_own():
    first, second = (shard(100, 0, 2, seed=5, epoch=epoch) for epoch in (0, 1))
    assert set(first) != set(second)
    np.testing.assert_array_equal(first, shard(100, 0, 2, seed=5, epoch=0))
    assert set(first) != set(shard(100, 0, 2, seed=6, epoch=0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 0, 4), "3 samples cannot be shared by 4 ranks"),
        ((0, 0, 1), "no samples"),
        ((-1, 0, 1), "no samples"),
        ((10, 2, 2), "of 2 ranks there is no rank 2"),
        ((10, -1, 2), "there is no rank -1"),
        ((10, 0, 0), "of 0 ranks"),
    ],
)
def test_what_cannot_be_shared_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        shard(*arguments)


def test_a_batch_size_below_one_is_refused():
    with pytest.raises(ValueError, match="batch size must be at least 1; got 0"):
        batches(10, 0, 2, 0)
