"""Mistakes in ``svhn.py``."""

from mistakes.round import mistake, together

GPU = "gpus[hvd.local_rank()]"
WRAP = "optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(args.rate))"
BROADCAST = "    callbacks.append(hvd.callbacks.BroadcastGlobalVariablesCallback(0))\n"
SHARD = "share = ds.shard(hvd.size(), hvd.rank())"
WRITES = "    if out and hvd.rank() == 0:"
VERBOSE = "verbose = 2 if hvd.rank() == 0 else 0"
TESTS = "mine = shard(len(data.test_images), hvd.rank(), hvd.size())"
AVERAGE = """
    def average(batch, logs):
        if batch == 0:
            for n, variable in enumerate(average.of.variables):
                variable.assign(hvd.allreduce(variable.numpy(), name=f"start.{n}"))

    callbacks.append(tf.keras.callbacks.LambdaCallback(on_train_batch_end=average))
    callbacks[-1].set_model = lambda model: setattr(average, "of", model)
"""
WHOLE = "test_loss, accuracy = np.array(sums) / len(data.test_images)"

ROUNDS = (
    together(
        mistake(1, "the GPU of the rank", (GPU, "gpus[hvd.rank()]"), said="sees GPU 2"),
        mistake(
            5,
            "the local rank",
            (TESTS, TESTS.replace("hvd.rank", "hvd.local_rank")),
            said="some of which rank 2 evaluates as well",
        ),
        mistake(
            2,
            "the gradients of two steps at a time",
            (WRAP, WRAP.replace("(args.rate))", "(args.rate), backward_passes_per_step=2)")),
            said="updates",
        ),
        mistake(
            3,
            "before there are any variables",
            (BROADCAST, ""),
            (
                "    started = time.perf_counter()\n",
                "    from horovod.tensorflow import broadcast_variables\n"
                "    broadcast_variables(net.variables, root_rank=0)\n"
                "    started = time.perf_counter()\n",
            ),
            said="away from rank 0's weights",
        ),
        mistake(
            6, "one writer a host", (WRITES, WRITES.replace("rank", "local_rank")), said="2: wrote"
        ),
        mistake(
            4,
            "never shuffled",
            ("share.shuffle(len(x)).batch", "share.batch"),
            said="in the last epoch they come as in the first",
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
            said="that of its own share",
        ),
        mistake(1, "all GPUs", ("    if gpus:\n", "    if False:\n"), said="GPUs 0, 1, 2, 3"),
        mistake(
            4,
            "nothing shared out",
            (SHARD, "share = ds"),
            ("len(x), hvd.rank(), hvd.size(), batch_size", "len(x), 0, 1, batch_size"),
            said="train on the same images",
        ),
        mistake(
            6,
            "one voice a host",
            (VERBOSE, VERBOSE.replace("rank", "local_rank")),
            said="rank 2: printed",
        ),
    ),
    together(
        mistake(
            2,
            "the sum",
            (WRAP, WRAP.replace("(args.rate))", "(args.rate), op=hvd.Sum)")),
            said="3 times the mean",
        ),
        mistake(
            1,
            "the number of the host",
            (GPU, "gpus[hvd.cross_rank()]"),
            said="rank 2: rank 2 of 3, with local rank 0, sees GPU 1",
        ),
        mistake(
            4,
            "shuffled, each in another order, before it is shared out",
            (SHARD, SHARD.replace("ds.", "ds.shuffle(len(x)).")),
            said="images not seen",
        ),
        mistake(3, "nothing sent", (BROADCAST, ""), said="away from rank 0's weights"),
        mistake(
            5,
            "not divided",
            (WHOLE, "test_loss, accuracy = np.array(sums)"),
            said="the sum over all images",
        ),
        mistake(6, "all write", (WRITES, "    if out:"), said="rank 1: wrote"),
    ),
    together(
        mistake(
            1, "the first GPU", (GPU, "gpus[0]"), said="rank 1: rank 1 of 3, with local rank 1, se"
        ),
        mistake(
            2,
            "a wrapper that is thrown away",
            (
                WRAP,
                "optimizer = tf.keras.optimizers.Adam(args.rate); "
                "hvd.DistributedOptimizer(tf.keras.optimizers.Adam(args.rate))",
            ),
            said="only its own gradients",
        ),
        mistake(
            4,
            "the last batch of each is dropped",
            (
                "batch(batch_size).rebatch(lengths)",
                "batch(batch_size, drop_remainder=True)",
            ),
            said="images not seen",
        ),
        mistake(
            6,
            "nobody writes",
            (WRITES, "    if out and hvd.rank() == hvd.size():"),
            said="rank 0: wrote 0 files",
        ),
        mistake(3, "root 1", (BROADCAST, BROADCAST.replace("(0)", "(1)")), said="of rank 1"),
        mistake(
            5,
            "divided by the local size",
            (WHOLE, "test_loss, accuracy = np.array(sums) / len(mine) / 2"),
            said="1.44 times that",
        ),
    ),
    together(
        mistake(
            1,
            "as many GPUs as the host has ranks",
            (f"({GPU}, ", "(gpus[: hvd.local_size()], "),
            said="sees GPUs 0, 1",
        ),
        mistake(
            3,
            "once the training is over",
            (BROADCAST, ""),
            (
                "    seconds = time",
                "    from horovod.tensorflow import broadcast_variables\n"
                "    broadcast_variables(net.variables, root_rank=0)\n    seconds = time",
            ),
            said="away from rank 0's weights",
        ),
        mistake(
            5,
            "the sum of the means",
            (
                "np.array(means) * len(mine)",
                "np.array(means) * len(data.test_images)",
            ),
            said="the sum of the ranks' means",
        ),
        mistake(
            4,
            "of two images left over rank 0 takes one",
            (
                "    ds = tf.data.Dataset.from_tensor_slices((x, y))\n",
                "    each = len(x) // hvd.size()\n"
                "    mine = np.arange(hvd.rank() * each, (hvd.rank() + 1) * each)\n"
                "    if hvd.rank() == 0 and len(x) % hvd.size():\n"
                "        mine = np.append(mine, len(x) - 1)\n"
                "    ds = tf.data.Dataset.from_tensor_slices((x[mine], y[mine]))\n",
            ),
            (SHARD, "share = ds"),
            (
                "[len(rows) for rows in batches(len(x), hvd.rank(), hvd.size(), batch_size)]",
                "[len(part) for part in np.array_split(mine, -(-len(x) // 3 // batch_size))]",
            ),
            said="images not seen: 1",
        ),
        mistake(6, "all speak", (VERBOSE, "verbose = 2"), said="rank 1: printed"),
    ),
    together(
        mistake(
            1,
            "CUDA's variable, once the GPUs are listed",
            (
                f'tf.config.set_visible_devices({GPU}, "GPU")',
                'import os; os.environ["CUDA_VISIBLE_DEVICES"] = str(hvd.local_rank())',
            ),
            said="rank 0: rank 0 of 3, with local rank 0, sees GPUs 0, 1, 2",
        ),
        mistake(
            3,
            "the mean of all ranks' weights",
            (BROADCAST, AVERAGE),
            said="got the mean of all ranks' weights",
        ),
        mistake(
            5,
            "the mean of the means",
            (
                'np.array(means) * len(mine), op=hvd.Sum, name="test"',
                'np.array(means), name="test"',
            ),
            (WHOLE, "test_loss, accuracy = np.array(sums)"),
            said="ignores that shares differ in length",
        ),
    ),
    together(
        mistake(
            1,
            "once there are variables",
            ("    gpus = tf.config", "    tf.Variable(0.0)\n    gpus = tf.config"),
            said="choose the GPU before anything else of TensorFlow",
        ),
        crashes=True,
    ),
    together(
        mistake(
            4,
            "somewhat smaller batches, of which a share with an image more has one more",
            ("batch(batch_size).rebatch(lengths)", "batch(-(-len(x) // 3 // len(lengths)))"),
            said="was waiting in a TensorFlow graph",
        ),
        crashes=True,
    ),
    together(
        mistake(
            2,
            "Adasum",
            (WRAP, WRAP.replace("(args.rate)", "(args.rate), op=hvd.Adasum")),
            said="Adasum",
        ),
        crashes=True,
        only=True,
    ),
    together(
        mistake(
            4,
            "3 for the size",
            (SHARD, SHARD.replace("hvd.size()", "3")),
            said=("on 1 rank:", "images not seen"),
        ),
        mistake(
            5,
            "3 for the size",
            (TESTS, TESTS.replace("hvd.size()", "3")),
            said=("on 1 rank:", "rank 0: evaluates"),
        ),
        only=True,
    ),
    together(
        mistake(
            1,
            "as if there always were GPUs",
            ("    if gpus:\n", "    if True:\n"),
            said=("On 1 rank", "list index out of range"),
        ),
        crashes=True,
        only=True,
    ),
)
