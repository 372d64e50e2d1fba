"""Which rank trains on which samples: disjoint shards, and equally many steps on every rank.

Of ``count`` samples, rank ``r`` of ``size`` takes every ``size``-th, beginning with the ``r``-th:
the shards are disjoint, cover every sample once, and differ by at most one sample in length.
Nothing is dropped, repeated or padded.

A collective such as the averaging of gradients waits for all ranks, so that one step more on one
rank is a deadlock. Full batches can give just that: of 65 samples, two ranks have 33 and 32, which
are two batches of at most 32 and one. Here every shard is cut into the same number of batches,
as many as the longest one needs,

    steps = ceil(ceil(count / size) / batch_size)

and as equal ones as possible: they differ by at most one sample, within a rank and, in every
step, between ranks. No batch is larger than ``batch_size`` and none is empty. One exception: where
``batch_size`` is 1 and ``size`` does not divide ``count``, there are ``count // size`` steps, and
the ranks with one sample more take two samples in their first step.

Horovod averages the ranks' gradients, each the mean over its own batch. Where the batches of a
step have b and b - 1 samples, each of the b - 1 weighs b / (b - 1) times as much as each of the b.

In tf.data, ``dataset.batch(batch_size).rebatch([len(batch) for batch in batches(…)])`` cuts a
dataset of the rank's shard in this way.

To reshuffle for every epoch and then deal the samples out in turn is what PyTorch's sampler does,
https://pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler. It
makes shards equal by repeating or dropping samples, which equal numbers of batches make needless.
"""

import numpy as np


def steps_per_epoch(count: int, size: int, batch_size: int) -> int:
    """Return how many steps an epoch has, on every rank alike.

    Args:
        count: how many samples there are, for all ranks together.
        size: how many ranks there are.
        batch_size: the largest number of samples that one rank takes in a step.

    Raises:
        ValueError: an argument below 1, or fewer samples than ranks.
    """
    _check(count, 0, size)
    if batch_size < 1:
        raise ValueError(f"the batch size must be at least 1; got {batch_size}")
    longest = -(-count // size)
    # A shard of one sample less has as many batches as long as none of them gets empty.
    return min(-(-longest // batch_size), count // size)


def shard(
    count: int, rank: int, size: int, *, seed: int | None = None, epoch: int = 0
) -> np.ndarray:
    """Return which samples are this rank's in this epoch.

    Args:
        count: how many samples there are, for all ranks together.
        rank: which rank asks, from 0.
        size: how many ranks there are.
        seed: of the shuffling, the same on all ranks; without one nothing is shuffled.
        epoch: which epoch it is; each has an order, and so a division, of its own.

    Returns:
        The samples' indices in 0…count-1, in the order to train in: int64 of shape (samples,),
        where samples is ``count // size``, or one more on the first ``count % size`` ranks.

    Raises:
        ValueError: no such rank, or fewer samples than ranks, so that a shard would be empty.
    """
    _check(count, rank, size)
    if seed is None:
        return np.arange(rank, count, size, dtype=np.int64)
    return np.random.default_rng([seed, epoch]).permutation(count)[rank::size]


def batches(
    count: int,
    rank: int,
    size: int,
    batch_size: int,
    *,
    seed: int | None = None,
    epoch: int = 0,
) -> list[np.ndarray]:
    """Return the samples of each step of this rank in this epoch.

    Arguments and errors are those of ``shard`` and ``steps_per_epoch``.

    Returns:
        ``steps_per_epoch(count, size, batch_size)`` arrays of indices, int64 of shape (samples,)
        each; one behind the other they are ``shard(count, rank, size, …)``.
    """
    steps = steps_per_epoch(count, size, batch_size)
    return np.array_split(shard(count, rank, size, seed=seed, epoch=epoch), steps)


def _check(count: int, rank: int, size: int) -> None:
    if size < 1 or not 0 <= rank < size:
        raise ValueError(f"of {size} ranks there is no rank {rank}; ranks count from 0")
    if count < size:
        raise ValueError(
            f"{count} samples cannot be shared by {size} ranks, because a rank without a sample "
            f"has no step to take part in: use at most {count} ranks"
            if count > 0
            else "there are no samples to share"
        )
