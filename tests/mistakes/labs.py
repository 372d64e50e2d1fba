"""Mistakes in the repairs of the labs: each has one step, and so one mistake a run."""

from mistakes.round import Round, mistake, together

SENT = "    broadcast_variables(model.variables, root_rank=0)\n"
MEAN = 'hvd.allreduce(np.mean(own), op=hvd.Average, name="loss").numpy()'
LOSS = f"        loss = {MEAN}\n"
PRINTS, LOCAL = "        if hvd.rank() == 0:\n", "        if hvd.local_rank() == 0:\n"
BATCHES = "return batches(count, hvd.rank(), hvd.size(), batch_size)"
LOADED = "        model = hvd.load_model(path)\n"
KERAS_LOADED = "        model = tf.keras.models.load_model(path)\n"
BROADCASTS = "from horovod.tensorflow import broadcast_variables\n"
LOSS_OF_LAB = "LOSS = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)\n"
SHARD = "    dataset = dataset.shard(hvd.size(), hvd.rank())\n"
SEED = "    tf.random.set_seed(1)\n"
# Where the epochs of a lab end.
EPOCH = "        _, accuracy = model.evaluate("


def alone(
    name: str, *changes: tuple[str, str], said: str | tuple[str, ...], crashes: bool = False
) -> Round:
    """Return a round of one mistake."""
    return together(mistake(1, name, *changes, said=said), crashes=crashes)


NO_BROADCAST = (
    alone("the first layer alone", (SENT, SENT.replace("bles,", "bles[:2],")), said="away from"),
    alone(
        "after each epoch",
        (SENT, ""),
        (EPOCH, SENT.replace("    ", "        ") + EPOCH),
        said="away from rank 0's weights",
    ),
    alone(
        "another rate on each host, and a broadcast after each epoch",
        ("seed=random.randrange(1_000_000)", "seed=0"),
        ("SGD(0.02,", "SGD(0.02 * hvd.local_size(),"),
        (SENT, ""),
        (EPOCH, SENT.replace("    ", "        ") + EPOCH),
        said="away from rank 0's weights",
    ),
    alone(
        "under a condition",
        (SENT, f"    if hvd.rank() == 0:\n    {SENT}"),
        said=("Rank 0 was waiting in", ": broadcast_variables(model.variables, root_rank=0)"),
        crashes=True,
    ),
    alone(
        "rank 0 trains, for all",
        (SENT, ""),
        (
            "            model.train_on_batch(images[rows], labels[rows])\n",
            "            if hvd.rank() == 0:\n"
            "                model.train_on_batch(images[rows], labels[rows])\n",
        ),
        said="Rank 0 was waiting in a TensorFlow graph",
        crashes=True,
    ),
)

COLLECTIVE_ON_RANK_0 = (
    alone("none at all", (MEAN, "np.mean(own)"), said="which are its own"),
    alone("all print it", (PRINTS, "        if True:\n"), said="rank 1: prints 2."),
    alone("the first of each host prints it", (PRINTS, LOCAL), said="rank 2: prints 2."),
    alone("rank 0 prints its own", ("{loss:.3f}", "{own[0]:.3f}"), said="rank 1: prints none"),
    alone(
        "3 for the size",
        (MEAN, MEAN.replace("Average", "Sum").replace(".numpy()", ".numpy() / 3")),
        said=("on 1 rank:", "rank 0: has"),
    ),
    alone(
        "one rank a host",
        (LOSS, f"        if hvd.local_rank() == 0:\n    {LOSS}"),
        said=(
            "Rank 0 was waiting in allreduce, lab_standstill.py line",
            "Rank 1 failed first",
        ),
        crashes=True,
    ),
)

UNEVEN_SHARDS = (
    alone(
        "the last image is left out",
        (BATCHES, BATCHES.replace("(count,", "(count - 1,")),
        said="images not seen: 1, seen more than once: 0",
    ),
    alone(
        "full batches alone",
        (
            BATCHES,
            "mine = np.arange(hvd.rank(), count, hvd.size()); full = count // hvd.size() // "
            "batch_size; return [mine[n * batch_size :][:batch_size] for n in range(full)]",
        ),
        said="images not seen",
    ),
    alone(
        "larger batches",
        (
            BATCHES,
            "mine = np.arange(hvd.rank(), count, hvd.size()); "
            "return np.array_split(mine, max(1, count // (batch_size * hvd.size())))",
        ),
        said="has a batch of",
    ),
    alone(
        "some images again",
        (
            BATCHES,
            "each = -(-count // hvd.size()); mine = np.arange(hvd.rank(), each * hvd.size(), "
            "hvd.size()) % count; return [mine[start : start + batch_size] "
            "for start in range(0, len(mine), batch_size)]",
        ),
        said="more than once",
    ),
    alone(
        "each image a step",
        (BATCHES, BATCHES.replace("batch_size)", "1)")),
        said=("with batches of 16 images on each rank an epoch has", "steps, of 1.0"),
    ),
    alone(
        "3 for the size",
        (BATCHES, BATCHES.replace("hvd.size()", "3")),
        said=("on 1 rank:", "images not seen"),
    ),
)

UNWRAPPED_OPTIMIZER = (
    alone(
        "compiled anew, without its momentum",
        (
            LOADED,
            f"{KERAS_LOADED}        model.compile(hvd.DistributedOptimizer("
            "tf.keras.optimizers.SGD(0.02, momentum=0.9)), LOSS)\n",
        ),
        ("def read_arguments", f"{LOSS_OF_LAB}def read_arguments"),
        said="after the resume, the optimizer has counted 0 of the",
    ),
    alone(
        "the sum",
        (
            LOADED,
            f"{KERAS_LOADED}        model.compile(hvd.DistributedOptimizer("
            "tf.keras.optimizers.SGD(0.02, momentum=0.9), op=hvd.Sum), "
            "LOSS)\n",
        ),
        ("def read_arguments", f"{LOSS_OF_LAB}def read_arguments"),
        said="after it 3 times the mean",
    ),
    alone(
        "no model comes from the file",
        (LOADED, ""),
        said="the optimizer of before the resume trains on",
    ),
    alone(
        "the weights of rank 0 in its place",
        (
            LOADED,
            f"{KERAS_LOADED}        broadcast_variables(model.variables, root_rank=0)\n",
        ),
        ("import tensorflow as tf\n", "import tensorflow as tf\n" + BROADCASTS),
        said="and after it only its own gradients",
    ),
    alone(
        "loaded as it should be, and then compiled anew",
        (LOADED, f"{LOADED}        model.compile(tf.keras.optimizers.SGD(0.02), LOSS)\n"),
        ("def read_arguments", f"{LOSS_OF_LAB}def read_arguments"),
        said="and after it only its own gradients",
    ),
    alone(
        "compiled anew, with a rate for the host",
        (
            LOADED,
            f"{KERAS_LOADED}        model.compile(hvd.DistributedOptimizer("
            "tf.keras.optimizers.SGD(0.02 * hvd.local_size(), momentum=0.9)), LOSS)\n",
        ),
        ("def read_arguments", f"{LOSS_OF_LAB}def read_arguments"),
        said="away from rank 0's weights",
    ),
)

SAME_IMAGES = (
    alone(
        "the local rank's share",
        (SHARD, SHARD.replace("hvd.rank()", "hvd.local_rank()")),
        said="ranks 0 and 2 have all of their images in common",
    ),
    alone(
        "a share of the host's",
        (SHARD, SHARD.replace("size(), hvd.", "local_size(), hvd.local_")),
        said=("ranks 0 and 1 have 0 % of their images in common", "or, by chance, every two have"),
    ),
    alone(
        "rank 0's share for all",
        (SHARD, SHARD.replace("hvd.rank()", "0")),
        said="any two of ranks 0, 1 and 2 have all of their images in common",
    ),
    alone(
        "another order of the same images",
        (SHARD, SHARD.replace("hvd.rank()", "0")),
        (
            ".repeat().shuffle(len(images))",
            ".shuffle(len(images), seed=hvd.rank()).repeat()",
        ),
        said="of their images in common",
    ),
    alone(
        "the same order, a batch later",
        (SHARD, ""),
        (
            ".batch(batch_size)\n",
            ".batch(batch_size).skip(hvd.rank())\n",
        ),
        said="% of their images in common",
    ),
    alone(
        "3 for the size",
        (SHARD, SHARD.replace("hvd.size()", "3")),
        said=("on 1 rank:", "% of the images"),
    ),
)

ROUNDS = {
    "lab_different_models": NO_BROADCAST,
    "lab_standstill": COLLECTIVE_ON_RANK_0,
    "lab_one_image_more": UNEVEN_SHARDS,
    "lab_drift_after_resume": UNWRAPPED_OPTIMIZER,
    "lab_no_gain": SAME_IMAGES,
}
