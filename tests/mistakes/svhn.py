"""Mistakes in ``svhn.py``."""

from mistakes.round import mistake, together

GPU = "gpus[hvd.local_rank()]"
WRAP = "optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(args.rate))"
BROADCAST = "    callbacks.append(hvd.callbacks.BroadcastGlobalVariablesCallback(0))\n"
SHARD = "share = ds.shard(hvd.size(), hvd.rank())"
WRITES = "    if out and hvd.rank() == 0:"
VERBOSE = "verbose = 2 if hvd.rank() == 0 else 0"
TESTS = "mine = shard(len(data.test_images), hvd.rank(), hvd.size())"
WHOLE = "test_loss, accuracy = np.array(sums) / len(data.test_images)"

ROUNDS = (
    together(
        mistake(1, "the GPU of the rank", (GPU, "gpus[hvd.rank()]"), said="sees GPU 2"),
        mistake(
            5,
            "the local rank",
            (TESTS, TESTS.replace("hvd.rank", "hvd.local_rank")),
            said="is evaluated by one rank",
        ),
        mistake(
            6, "one writer a host", (WRITES, WRITES.replace("rank", "local_rank")), said="2: wrote"
        ),
    ),
    together(
        mistake(
            2, "no averaging", (WRAP, WRAP.replace("hvd.DistributedOptimizer", "")), said="own"
        ),
        mistake(
            5,
            "one share's",
            (WHOLE, "test_loss, accuracy = means"),
            said="of the whole test set",
        ),
        mistake(
            6,
            "one voice a host",
            (VERBOSE, VERBOSE.replace("rank", "local_rank")),
            said="rank 2: printed",
        ),
        spoiled=(3,),
    ),
    together(
        mistake(
            2,
            "the sum",
            (WRAP, WRAP.replace("(args.rate))", "(args.rate), op=hvd.Sum)")),
            said="3 times the mean",
        ),
        mistake(3, "nothing sent", (BROADCAST, ""), said="away from rank 0's weights"),
        mistake(
            5,
            "not divided",
            (WHOLE, "test_loss, accuracy = np.array(sums)"),
            said="of the whole test set",
        ),
        mistake(6, "all write", (WRITES, "    if out:"), said="rank 1: wrote"),
    ),
    together(
        mistake(
            1, "the first GPU", (GPU, "gpus[0]"), said="rank 1: rank 1 of 3, with local rank 1, se"
        ),
        mistake(3, "root 1", (BROADCAST, BROADCAST.replace("(0)", "(1)")), said="of rank 1"),
        mistake(
            5,
            "divided by the local size",
            (WHOLE, "test_loss, accuracy = np.array(sums) / len(mine) / 2"),
            said="of the whole test set",
        ),
    ),
    together(
        mistake(
            4,
            "the local rank",
            (SHARD, SHARD.replace("hvd.rank", "hvd.local_rank")),
            said="Rank 2 was waiting in a TensorFlow graph",
        ),
        crashes=True,
    ),
)
