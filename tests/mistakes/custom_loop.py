"""Mistakes in ``custom_loop.py``."""

from mistakes.round import mistake, together

GPU = "gpus[hvd.local_rank()]"
TAPE = "        tape = hvd.DistributedGradientTape(tape)\n"
BROADCAST = "hvd.broadcast_variables(model.variables, root_rank=0)"
APPLY = "optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))"
SHARE = "batches(count, hvd.rank(), hvd.size(), batch_size, seed=0, epoch=epoch)"
LOSS = 'loss = float(hvd.allreduce(np.float64(loss), op=hvd.Average, name="loss"))'

ROUNDS = (
    together(
        mistake(
            1,
            "the GPU of the rank",
            (GPU, "gpus[hvd.rank()]"),
            said="rank 2: rank 2 of 3, with local rank 0, sees GPU 2",
        ),
        mistake(
            5,
            "the sum",
            (LOSS, LOSS.replace("Average", "Sum")),
            said="the sum of the ranks' losses",
        ),
        mistake(
            2,
            "rank 0's gradients, for all",
            (TAPE, ""),
            (
                APPLY,
                "gradients = [hvd.broadcast(part, root_rank=0) for part in gradients]\n        "
                + APPLY,
            ),
            said="rank 1: its updates use the gradients of rank 0",
        ),
        mistake(
            4,
            "of two images left over rank 0 takes one",
            (
                f"return {SHARE}",
                "order = np.random.default_rng(epoch).permutation(count)\n"
                "    each, rank = count // hvd.size(), hvd.rank()\n"
                "    left = order[hvd.size() * each :][: rank == 0]\n"
                "    mine = np.append(order[rank * each :][:each], left)\n"
                "    return np.array_split(mine, -(-count // (hvd.size() * batch_size)))",
            ),
            said="images not seen: 1",
        ),
        mistake(
            3,
            "one step too late",
            ("if optimizer.iterations == 1:", "if optimizer.iterations == 2:"),
            said="away from rank 0's weights",
        ),
    ),
    together(
        mistake(
            1, "the first GPU", (GPU, "gpus[0]"), said="rank 1: rank 1 of 3, with local rank 1"
        ),
        mistake(
            2,
            "the sum",
            (TAPE, TAPE.replace("(tape)", "(tape, op=hvd.Sum)")),
            said="its updates use 3 times the mean",
        ),
        mistake(
            4,
            "the local rank",
            (SHARE, SHARE.replace("hvd.rank", "hvd.local_rank")),
            said="ranks 0 and 2 train on the same images",
        ),
        mistake(
            3,
            "the first layer alone",
            (BROADCAST, BROADCAST.replace("model.variables", "model.variables[:2]")),
            said="away from rank 0's weights",
        ),
        mistake(5, "one's own", (LOSS, "pass"), said="which are its own"),
    ),
    together(
        mistake(
            1, "all GPUs", ("    if gpus:\n", "    if not gpus:\n"), said="sees GPUs 0, 1, 2, 3"
        ),
        mistake(
            2,
            "averaged by hand with the local size",
            (TAPE, TAPE.replace("(tape)", "(tape, op=hvd.Sum)")),
            (APPLY, "gradients = [part / 2 for part in gradients]\n        " + APPLY),
            said="its updates use 1.5 times the mean",
        ),
        mistake(
            4,
            "every rank has its own order",
            (SHARE, SHARE.replace("seed=0", "seed=hvd.rank()")),
            said="images not seen",
        ),
        mistake(
            5,
            "rank 0's, for all",
            (LOSS, 'loss = float(hvd.broadcast(np.float64(loss), root_rank=0, name="loss"))'),
            said="those of rank 0",
        ),
        mistake(
            3,
            "the optimizer's state alone",
            (BROADCAST, "pass"),
            said="away from rank 0's weights",
        ),
    ),
    together(
        mistake(
            1,
            "the number of the host",
            (GPU, "gpus[hvd.cross_rank()]"),
            said="rank 2: rank 2 of 3, with local rank 0, sees GPU 1",
        ),
        mistake(2, "no averaging", (TAPE, ""), said="only its own gradients"),
        mistake(
            5,
            "the sum over the local size",
            (LOSS, LOSS.replace("Average", "Sum") + " / 2"),
            said="1.5 times the mean",
        ),
        mistake(
            4,
            "smaller batches",
            (SHARE, SHARE.replace("batch_size,", "batch_size // 3,")),
            said=("with batches of 5 images on each rank an epoch has", "steps, of 1.0"),
        ),
        mistake(
            3,
            "one seed for all, and no broadcast",
            ("if optimizer.iterations == 1:", "if False:"),
            ("    if arguments.weights_seed is not None:\n", "    arguments.weights_seed = 1\n"),
            (
                "        tf.keras.utils.set_random_seed(arguments.weights_seed)",
                "    tf.keras.utils.set_random_seed(arguments.weights_seed)",
            ),
            said="nothing of their size was broadcast",
        ),
    ),
    together(
        mistake(
            1,
            "as many GPUs as the host has ranks",
            (f"({GPU}, ", "(gpus[: hvd.local_size()], "),
            said="rank 0: rank 0 of 3, with local rank 0, sees GPUs 0, 1",
        ),
        mistake(
            2,
            "divided once more",
            (
                APPLY,
                "gradients = [part / hvd.size() for part in gradients]\n        " + APPLY,
            ),
            said="its updates use 0.333 times the mean",
        ),
        mistake(
            5,
            "the last epoch alone",
            ("losses.append(loss)", "losses = [loss]"),
            said="1 number for 2 epochs",
        ),
        mistake(
            3,
            "never",
            ("if optimizer.iterations == 1:", "if optimizer.iterations == 0:"),
            said="away from rank 0's weights",
        ),
        mistake(
            4,
            "all images everywhere",
            (SHARE, SHARE.replace("hvd.rank(), hvd.size()", "0, 1")),
            said="ranks 0, 1 and 2 train on the same images",
        ),
    ),
    together(
        mistake(
            3,
            "the mean of all ranks' weights",
            (
                BROADCAST,
                "model.set_weights([hvd.allreduce(weights) for weights in model.get_weights()])",
            ),
            said="got the mean of all ranks' weights",
        ),
        mistake(
            4,
            "the same order in each epoch",
            (SHARE, SHARE.replace(", epoch=epoch", "")),
            said=(
                "the images come in a different order in each epoch",
                "in the last epoch they come as in the first",
            ),
        ),
        mistake(
            5,
            "the sum in each step",
            ("        return loss\n", '        return hvd.allreduce(loss, op=hvd.Sum, name="l")\n'),
            said="the sum of the ranks' losses",
        ),
    ),
    together(
        mistake(
            4,
            "as many steps as its own share needs",
            (
                f"return {SHARE}",
                "mine = np.random.default_rng(epoch).permutation(count)[hvd.rank() :: hvd.size()]\n"
                "    return np.array_split(mine, -(-len(mine) // batch_size))",
            ),
            said="Rank 0 was waiting in a TensorFlow graph",
        ),
        crashes=True,
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
)
