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

SEED = """    if arguments.weights_seed is not None:
        tf.keras.utils.set_random_seed(arguments.weights_seed)
"""
RECORD = '    record("val_loss", history.history["val_loss"])\n'
LAST = f"""    losses = history.history["val_loss"]
    losses[-1] = float(hvd.allreduce(losses[-1], name="last"))
{RECORD}"""
SKIPPED = "first_epoch = resume(model, arguments.folder); first_epoch += first_epoch > 0"

ROUNDS = (
    together(
        mistake(1, "the GPU of the rank", (GPU, "gpus[hvd.rank()]"), said="sees GPU 2"),
        mistake(
            2,
            "one voice a host",
            (PRINT, PRINT.replace("rank()", "local_rank()")),
            said="rank 2: printed 1 line:",
        ),
        mistake(
            5,
            "the local rank",
            (BATCHES, BATCHES.replace("hvd.rank", "hvd.local_rank")),
            said="ranks 0 and 2 train on the same images",
        ),
        mistake(
            3,
            "the gradients of two steps at a time",
            (WRAP, WRAP.replace("(optimizer)", "(optimizer, backward_passes_per_step=2)")),
            said="gradients, ",
        ),
        mistake(
            6,
            "the local rank",
            (TESTS, TESTS.replace("hvd.rank", "hvd.local_rank")),
            said="rank 0: evaluates 120 images, some of which rank 2 evaluates as well",
        ),
        mistake(
            7,
            "one writer a host",
            (WRITES, WRITES.replace("rank()", "local_rank()")),
            said="rank 2: wrote",
        ),
        mistake(8, "2 for the size", (RATE, RATE.replace("hvd.size()", "2")), said="2 times 0.02"),
        mistake(
            10,
            "SGD",
            (NOVOGRAD, "optimizer = tf.keras.optimizers.SGD(learning_rate)"),
            said=("norm", "(0: not along its gradient)"),
        ),
        spoiled=(9,),
    ),
    together(
        mistake(
            2,
            "fit speaks everywhere",
            (VERBOSE, "verbose = 2"),
            said="rank 1: printed 10 lines",
        ),
        mistake(1, "all GPUs", ("    if gpus:\n", "    if False:\n"), said="GPUs 0, 1, 2, 3"),
        mistake(3, "no averaging", (WRAP, ""), said="only its own gradients"),
        mistake(
            5,
            "every rank has its own order",
            ("seed=arguments.seed,", "seed=arguments.seed + rank,"),
            said="images not seen",
        ),
        mistake(6, "no average", (AVERAGE, "callbacks = []"), said="that of its own share"),
        mistake(7, "all write", (WRITES, WRITES.replace(" and hvd.rank() == 0", "")), said="wrote"),
        mistake(8, "no scaling", (RATE, "return arguments.learning_rate"), said="1 times 0.02"),
        mistake(
            9,
            "the warmup alone",
            ("    return [warmup, schedule]", "    return [warmup]"),
            said=("after the warmup the schedule alone sets the rate", ", then 0."),
        ),
        mistake(
            10,
            "the norm of all layers together",
            (NOVOGRAD, "optimizer = tf.keras.optimizers.SGD(learning_rate, global_clipnorm=0.1)"),
            said="for a rate of 1 the first layers moved by",
        ),
    ),
    together(
        mistake(
            1, "the first GPU", (GPU, "gpus[0]"), said="rank 1: rank 1 of 3, with local rank 1, se"
        ),
        mistake(
            4,
            "nothing sent",
            (WEIGHTS, ""),
            said=("every rank goes on with rank 0's weights", "away from rank 0's weights"),
        ),
        mistake(
            2,
            "nobody speaks",
            (PRINT, PRINT.replace("== 0", "< 0")),
            (VERBOSE, "verbose = 0"),
            said="rank 0: printed 0 lines",
        ),
        mistake(
            3,
            "a wrapper that is thrown away",
            (WRAP, "    hvd.DistributedOptimizer(optimizer)\n"),
            said="only its own gradients",
        ),
        mistake(
            5,
            "the steps of a single process",
            (STEPS, STEPS.replace("hvd.size()", "1")),
            said="its steps per epoch are not the number of this rank's batches",
        ),
        mistake(
            6,
            "all evaluate everything",
            (TESTS, "mine = slice(None)"),
            said=(
                "each of the 360 test images is evaluated by one rank",
                "some of which ranks 1 and 2 evaluate as well",
            ),
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
            said=("each layer's gradient is divided by its norm", "moved by 0, 0, 0, 0"),
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
        mistake(
            1,
            "the number of the host",
            (GPU, "gpus[hvd.cross_rank()]"),
            said="rank 2: rank 2 of 3, with local rank 0, sees GPU 1",
        ),
        mistake(
            2,
            "the first line comes from everywhere",
            (PRINT, PRINT.replace("hvd.rank() == 0", "model")),
            said="rank 1: printed 1 line:",
        ),
        mistake(
            5,
            "the last image is left out",
            (
                "len(images), rank, size, arguments.batch_size,",
                "len(images) - 1, rank, size, arguments.batch_size,",
            ),
            said="images not seen: 1, seen more than once: 0",
        ),
        mistake(
            8,
            "the root of the size",
            (RATE, RATE + " ** 0.5"),
            said="1.73 times 0.02",
        ),
        mistake(
            10,
            "Adam with a schedule of NovoGrad's rate",
            (NOVOGRAD, "optimizer = tf.keras.optimizers.RMSprop(learning_rate)"),
            said=("each layer's gradient is divided by its norm", "moved by 0, 0, 0, 0"),
        ),
        mistake(
            6,
            "the loss stays",
            (AVERAGE, ACCURACY_ALONE),
            said=("every rank has the loss of", "that of its own share"),
        ),
        mistake(
            4,
            "the state stays",
            (STATE, ""),
            said=("the state of rank 0's optimizer", "away from rank 0's weights"),
        ),
        mistake(
            9,
            "the schedule from the start",
            (START, "start_epoch=0"),
            said=("the rate rises with every step", "the rates are 0.0"),
        ),
        # The resumed run has another state, too.
        spoiled=(7,),
    ),
    together(
        mistake(
            1,
            "as many GPUs as the host has ranks",
            (f"({GPU}, ", "(gpus[: hvd.local_size()], "),
            said="sees GPUs 0, 1",
        ),
        mistake(
            2,
            "the last rank speaks",
            (PRINT, PRINT.replace("== 0", "== hvd.size() - 1")),
            (VERBOSE, VERBOSE.replace("== 0", "== hvd.size() - 1")),
            said="rank 2: printed",
        ),
        mistake(
            6,
            "the training images",
            (
                "data.test_images[mine], data.test_labels[mine]",
                "images[: len(mine)], labels[: len(mine)]",
            ),
            said="rank 0: evaluates 0 images",
        ),
        mistake(7, "the epoch stays", (EPOCH, ""), said="resumed from a checkpoint, the script"),
        mistake(
            8,
            "scaled twice",
            (RATE, RATE + " ** 2"),
            said="9 times 0.02",
        ),
        mistake(
            10,
            "each gradient is cut at a norm of 1",
            (NOVOGRAD, "optimizer = tf.keras.optimizers.SGD(learning_rate, clipnorm=1.0)"),
            said=(
                "each layer's gradient is divided by its norm",
                "for a rate of 1 the first layers moved by 0.",
            ),
        ),
        mistake(
            9,
            "a jump after the warmup",
            (WARMUP, WARMUP.replace("learning_rate,", "learning_rate / hvd.size(),", 1)),
            said=("the rate rises with every step", "they end where they should begin"),
        ),
        crashes=True,
    ),
    together(
        mistake(
            4,
            "the last rank's",
            (WEIGHTS, WEIGHTS.replace("=0", "=hvd.size() - 1")),
            said="got the weights of rank 2",
        ),
        mistake(
            5,
            "all images everywhere",
            (BATCHES, "first_epoch, 0, 1)"),
            said="train on the same images",
        ),
        mistake(
            7,
            "one epoch is skipped",
            ("first_epoch = resume(model, arguments.folder)", SKIPPED),
            said="made 1 more epochs",
        ),
        mistake(
            9,
            "no warmup",
            (
                "    return [warmup, schedule]",
                "    return [tf.keras.callbacks.LearningRateScheduler("
                "lambda e: learning_rate * factor(e))]",
            ),
            said="the rates are",
        ),
    ),
    together(
        mistake(
            4,
            "the first layer alone",
            (WEIGHTS, WEIGHTS.replace("model.variables", "model.variables[:2]")),
            said="away from rank 0's weights",
        ),
        mistake(
            7,
            "nobody writes",
            (WRITES, WRITES.replace("== 0", "< 0")),
            said="rank 0: wrote 0 files",
        ),
        mistake(
            9,
            "steps for epochs in both callbacks",
            (WARMUP, WARMUP.replace("warmup_epochs,", "warmup_epochs * steps,")),
            (START, START + " * steps"),
            said=("1/3 of the highest", "of the way at the end"),
        ),
        spoiled=(8,),
    ),
    together(
        mistake(
            4,
            "after the training",
            (WEIGHTS, ""),
            (
                '    record("val_accuracy"',
                '    broadcast_variables(model.variables, root_rank=0)\n    record("val_accuracy"',
            ),
            said="away from rank 0's weights",
        ),
        mistake(
            9,
            "a warmup that goes on",
            (WARMUP, WARMUP.replace("warmup_epochs,", "warmup_epochs + 1,")),
            said=("the rate rises with every step", "of the way at the end"),
        ),
        spoiled=(6, 7),
    ),
    together(
        mistake(
            2,
            "silence after the first line",
            (VERBOSE, "verbose = 0"),
            said=("rank 0 prints during the training, too", "printed 1 line in all"),
        ),
        mistake(
            4,
            "the same seed on every rank",
            (SEED, "    tf.keras.utils.set_random_seed(arguments.seed)\n"),
            (WEIGHTS, ""),
            (STATE, ""),
            said="nothing of their size was broadcast",
        ),
        mistake(
            5,
            "the first epoch's order in every epoch",
            ("epoch=epoch,", "epoch=0,"),
            said="in the last epoch they come as in the first",
        ),
        mistake(
            6,
            "the last epoch's loss alone",
            (AVERAGE, ACCURACY_ALONE),
            (RECORD, LAST),
            said=("val_loss is the same on every rank after every epoch", "rank 1: has "),
        ),
        mistake(
            7,
            "all look for a checkpoint",
            (LOADS, LOADS.replace(" and hvd.rank() == 0", "")),
            said="rank 1: looked for a checkpoint",
        ),
        mistake(
            9,
            "a warmup of one epoch",
            (WARMUP, WARMUP.replace("arguments.warmup_epochs", "1")),
            (START, "start_epoch=1"),
            said=("the rate rises with every step", "the rates are 0.0"),
        ),
    ),
    together(
        mistake(
            5,
            "the batches of its own share",
            (
                STEPS,
                "own = shard(len(images), hvd.rank(), hvd.size())\n"
                "    steps = -(-len(own) // arguments.batch_size)",
            ),
            said="Rank 2 was waiting in",
        ),
        crashes=True,
    ),
    together(
        mistake(
            9,
            "scaled twice",
            (WARMUP, WARMUP.replace("learning_rate,", "learning_rate * hvd.size(),", 1)),
            ("learning_rate, factor,", "learning_rate * hvd.size(), factor,"),
            said=(
                "the highest rate is 0.18: multiplied by 3 twice",
                "has the number of ranks in it",
            ),
        ),
        only=True,
    ),
    together(
        mistake(
            5,
            "3 for the size",
            (BATCHES, BATCHES.replace("hvd.size()", "3")),
            said=("on 1 rank:", "images not seen"),
        ),
        mistake(
            6,
            "3 for the size",
            (TESTS, TESTS.replace("hvd.size()", "3")),
            said=("on 1 rank:", "rank 0: evaluates 120 images"),
        ),
        mistake(
            9,
            "steps for epochs",
            (WARMUP, WARMUP.replace("warmup_epochs,", "warmup_epochs * steps,")),
            said=("from 0.02, that of a single process, to 0.06", "% of the way at the end"),
        ),
        only=True,
    ),
    together(
        mistake(
            9,
            "a rate where a factor belongs",
            ("learning_rate, factor, start", "learning_rate, lambda e: 0.06 * factor(e), start"),
            said="a rate is multiplied by a rate, 0.06, where a factor belongs",
        ),
        only=True,
    ),
    together(
        mistake(
            9,
            "a momentum that is corrected",
            (WARMUP, WARMUP.replace("momentum_correction=False, ", "")),
            (NOVOGRAD, "optimizer = tf.keras.optimizers.SGD(learning_rate, momentum=0.9)"),
            said="in _adjust_learning_rate",
        ),
        crashes=True,
        only=True,
    ),
    together(
        mistake(
            3,
            "Adasum",
            (WRAP, WRAP.replace("(optimizer", "(optimizer, op=hvd.Adasum")),
            said="Adasum",
        ),
        crashes=True,
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
