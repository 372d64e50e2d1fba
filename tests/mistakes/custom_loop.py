"""Mistakes in ``custom_loop.py``."""

from mistakes.round import mistake, together

GPU = "gpus[hvd.local_rank()]"
TAPE = "        tape = hvd.DistributedGradientTape(tape)\n"
BROADCAST = "hvd.broadcast_variables(model.variables, root_rank=0)"
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
            (
                "optimizer.apply_gradients(zip(gradients,",
                "gradients = [part / 2 for part in gradients]\n"
                "        optimizer.apply_gradients(zip(gradients,",
            ),
            said="its updates use 1.5 times the mean",
        ),
        mistake(
            4,
            "every rank has its own order",
            (SHARE, SHARE.replace("seed=0", "seed=hvd.rank()")),
            said="images were not seen",
        ),
        mistake(
            5,
            "rank 0's, for all",
            (LOSS, 'loss = float(hvd.broadcast(np.float64(loss), root_rank=0, name="loss"))'),
            said="those of rank 0",
        ),
    ),
    together(
        mistake(2, "no averaging", (TAPE, ""), said="its own gradients alone"),
        mistake(
            4,
            "all images everywhere",
            (SHARE, SHARE.replace("hvd.rank(), hvd.size()", "0, 1")),
            said="ranks 0 and 1 and 2 train on the same images",
        ),
    ),
    together(
        mistake(
            3,
            "never",
            ("if optimizer.iterations == 1:", "if optimizer.iterations == 0:"),
            said="away from rank 0's weights",
        ),
        mistake(
            4,
            "smaller batches",
            (SHARE, SHARE.replace("batch_size,", "batch_size // 3,")),
            said="with batches of 16 images on each rank an epoch has",
        ),
    ),
    together(
        mistake(
            4,
            "the local rank and size",
            (SHARE, SHARE.replace("hvd.", "hvd.local_")),
            said="Rank 2 was waiting in a TensorFlow graph",
        ),
        crashes=True,
    ),
    together(
        mistake(
            3, "root 1", (BROADCAST, BROADCAST.replace("=0", "=1")), said="the weights of rank 1"
        ),
        crashes=True,
    ),
)
