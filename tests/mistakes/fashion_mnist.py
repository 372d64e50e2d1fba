"""Mistakes in ``fashion_mnist.py``."""

from mistakes.round import mistake, together

GPU = "gpus[hvd.local_rank()]"
PRINT = "    if hvd.rank() == 0:\n        print("
VERBOSE = "verbose = 2 if hvd.rank() == 0 else 0"
WRAP = "    optimizer = hvd.DistributedOptimizer(optimizer)\n"
WEIGHTS = "    broadcast_variables(model.variables, root_rank=0)\n"
STATE = "    broadcast_variables(optimizer.variables, root_rank=0)\n"
STEPS = "steps = steps_per_epoch(len(images), hvd.size(), arguments.batch_size)"
BATCHES = "first_epoch, hvd.rank(), hvd.size())"
TESTS = "mine = shard(tests, hvd.rank(), hvd.size())"
AVERAGE = "callbacks = [hvd.callbacks.MetricAverageCallback()]"
LOADS = "    if arguments.folder and hvd.rank() == 0:\n        first_epoch"
EPOCH = "    first_epoch = int(hvd.broadcast(first_epoch, root_rank=0))\n"
WRITES = "    if arguments.folder and hvd.rank() == 0:\n        callbacks"
RATE = "return arguments.learning_rate * hvd.size()"
WARMUP = "learning_rate, arguments.warmup_epochs, momentum_correction=False, steps_per_epoch=steps"
START = "start_epoch=arguments.warmup_epochs"
NOVOGRAD = "optimizer = NovoGrad(learning_rate)"
# The loss alone: the accuracy of each share stays.
ACCURACY_ALONE = """callbacks = [tf.keras.callbacks.LambdaCallback(
            on_epoch_end=lambda _, logs: logs.update(
                val_accuracy=float(hvd.allreduce(logs["val_accuracy"], name="accuracy"))
            )
        )]"""

ROUNDS = (
    together(
        mistake(1, "the GPU of the rank", (GPU, "gpus[hvd.rank()]"), said="sees GPU 2"),
        mistake(
            2,
            "one voice a host",
            (PRINT, PRINT.replace("rank()", "local_rank()")),
            said="rank 2: printed 1 lines",
        ),
        mistake(
            5,
            "the local rank",
            (BATCHES, BATCHES.replace("hvd.rank", "hvd.local_rank")),
            said="ranks 0 and 2 train on the same images",
        ),
        mistake(
            6,
            "the local rank",
            (TESTS, TESTS.replace("hvd.rank", "hvd.local_rank")),
            said="each of the 360 test images is evaluated by one rank",
        ),
        mistake(
            7,
            "one writer a host",
            (WRITES, WRITES.replace("rank()", "local_rank()")),
            said="rank 2: wrote",
        ),
        mistake(8, "2 for the size", (RATE, RATE.replace("hvd.size()", "2")), said="2 times 0.02"),
        mistake(
            10, "SGD", (NOVOGRAD, "optimizer = tf.keras.optimizers.SGD(learning_rate)"), said="norm"
        ),
    ),
    together(
        mistake(
            2,
            "fit speaks everywhere",
            (VERBOSE, "verbose = 2"),
            said="rank 1: printed 8 lines",
        ),
        mistake(3, "no averaging", (WRAP, ""), said="its own gradients alone"),
        mistake(6, "no average", (AVERAGE, "callbacks = []"), said="of the whole test set"),
        mistake(7, "all write", (WRITES, WRITES.replace(" and hvd.rank() == 0", "")), said="wrote"),
        mistake(8, "no scaling", (RATE, "return arguments.learning_rate"), said="1 times 0.02"),
        spoiled=(4, 9),
    ),
    together(
        mistake(
            1, "the first GPU", (GPU, "gpus[0]"), said="rank 1: rank 1 of 3, with local rank 1, se"
        ),
        mistake(
            4,
            "nothing sent",
            (WEIGHTS, ""),
            said="every rank goes on with rank 0's weights",
        ),
        mistake(
            5,
            "the steps of a single process",
            (STEPS, STEPS.replace("hvd.size()", "1")),
            said="the number of steps of an epoch is not that of this rank's batches",
        ),
        mistake(
            6,
            "all evaluate everything",
            (TESTS, "mine = slice(None)"),
            said="each of the 360 test images is evaluated by one rank",
        ),
        mistake(
            8,
            "the local size",
            (RATE, RATE.replace("hvd.size", "hvd.local_size")),
            said="2 times 0.02",
        ),
        mistake(
            10,
            "the rate for a single process",
            (NOVOGRAD, "optimizer = tf.keras.optimizers.Adam(learning_rate)"),
            said="each layer's gradient is divided by its norm",
        ),
        spoiled=(7, 9),
    ),
    together(
        mistake(
            3,
            "the sum",
            (WRAP, WRAP.replace("(optimizer)", "(optimizer, op=hvd.Sum)")),
            said="its updates use 3 times the mean",
        ),
        mistake(6, "the loss stays", (AVERAGE, ACCURACY_ALONE), said="every rank has the loss of"),
        mistake(
            7,
            "the state stays",
            (STATE, ""),
            said="ends with the weights of a run that was never killed",
        ),
        mistake(
            9,
            "the schedule from the start",
            (START, "start_epoch=0"),
            said="in the first epoch the rate rises with every step",
        ),
    ),
    together(
        mistake(7, "the epoch stays", (EPOCH, ""), said="resumed from a checkpoint, the script"),
        mistake(
            9,
            "a jump after the warmup",
            (WARMUP, WARMUP.replace("learning_rate,", "learning_rate / hvd.size(),", 1)),
            said="the rate rises with every step",
        ),
        crashes=True,
    ),
)
