"""Mistakes in ``input_pipeline.py``."""

from mistakes.round import mistake, together

START = "    dataset = start(files)\n"
DECODE = "dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)"
CACHE = "    dataset = dataset.cache()\n"
SHUFFLE = "dataset = dataset.shuffle(len(files.train_paths))"
SHIFT = "    dataset = dataset.map(shift)\n"
BATCH = "    dataset = dataset.batch(batch_size)\n"
PREFETCH = "    dataset = dataset.prefetch(tf.data.AUTOTUNE)\n"
ONE_FILE = "lambda sample: tf.data.Dataset.from_tensors(sample).map(decode)"
IN_TURN = """classes = [
        dataset.filter(lambda sample, digit=digit: sample["label"] == digit).shuffle(99)
        for digit in range(10)
    ]
    turns = tf.data.Dataset.range(10).repeat(99)
    dataset = tf.data.Dataset.choose_from_datasets(classes, turns, stop_on_empty_dataset=False)"""

ROUNDS = (
    together(
        mistake(
            1, "one at a time", (DECODE, DECODE.replace("tf.data.AUTOTUNE", "1")), said="0% of the"
        ),
        mistake(
            3,
            "a cache of paths",
            (CACHE, ""),
            (START, START + CACHE),
            said="times",
        ),
        mistake(
            2,
            "a buffer for one batch",
            (SHUFFLE, "dataset = dataset.shuffle(batch_size)"),
            said="that is how many the shuffle's buffer seems to hold",
        ),
        mistake(
            5,
            "the last batch is dropped",
            (BATCH, BATCH.replace("_size)", "_size, drop_remainder=True)")),
            said="missing",
        ),
        mistake(4, "no prefetch", (PREFETCH, ""), said="0 % of the batches were ready"),
    ),
    together(
        mistake(
            1,
            "in any order, but still one at a time",
            (DECODE, "dataset = dataset.map(decode, deterministic=False)"),
            said="0% of the files were started",
        ),
        mistake(
            3, "a new dataset that is thrown away", (CACHE, "    dataset.cache()\n"), said="times"
        ),
        mistake(
            2,
            "one order for all epochs",
            (SHUFFLE, SHUFFLE.replace("paths))", "paths), reshuffle_each_iteration=False)")),
            said="correlation between two epochs: 1.00",
        ),
        mistake(
            5,
            "batches of half the size",
            (BATCH, BATCH.replace("_size)", "_size // 2)")),
            said="batches of [10",
        ),
        mistake(
            4,
            "before the shift and the batches",
            (PREFETCH, ""),
            (SHIFT, PREFETCH + SHIFT),
            said="of the batches were ready",
        ),
    ),
    together(
        mistake(
            1,
            "files taken in turn, each after the other",
            (DECODE, "dataset = dataset.prefetch(16).map(decode)"),
            said="0% of the files were started",
        ),
        mistake(
            3,
            "a cache in a file",
            (CACHE, CACHE.replace("()", '(tempfile.mkdtemp(prefix="kept-") + "/cache")')),
            said="MB were written into files",
        ),
        mistake(2, "no order of its own", (SHUFFLE, ""), said="correlation with the order of the"),
        mistake(
            5,
            "every image twice",
            (BATCH, BATCH.replace(".batch", ".repeat(2).batch")),
            said="twice or with a wrong label",
        ),
        mistake(
            4,
            "a dataset that is thrown away",
            (PREFETCH, "    dataset.prefetch(2)\n"),
            said="of the batches were ready",
        ),
    ),
    together(
        mistake(
            3,
            "the shift is kept, too",
            (CACHE, ""),
            (SHIFT, SHIFT + CACHE),
            said="shifts",
        ),
        mistake(
            2,
            "whole batches are shuffled",
            (SHUFFLE, ""),
            (BATCH, BATCH + "    dataset = dataset.shuffle(99)\n"),
            said="images of one batch that share a batch in another epoch as well: 100%",
        ),
        spoiled=(5,),
    ),
    together(
        mistake(
            3,
            "a seed with which each pass begins the random numbers anew",
            (START, f"    tf.random.set_seed(1)\n{START}"),
            (SHIFT, ""),
            (CACHE, CACHE + SHIFT),
            said="100% of the images were shifted just as in the epoch before",
        ),
        mistake(
            2,
            "a buffer for as many as there are without an argument",
            (SHUFFLE, "dataset = dataset.shuffle(121)"),
            said="that is how many the shuffle's buffer seems to hold",
        ),
        mistake(
            5,
            "the batch size that there is without an argument",
            (BATCH, BATCH.replace("batch_size", "16")),
            said="batches of [16",
        ),
    ),
    together(
        mistake(
            2,
            "a random order within each class, and the classes in turn",
            (SHUFFLE, IN_TURN),
            said="of the same class in another epoch: ",
        ),
        mistake(
            4,
            "first of all",
            (PREFETCH, ""),
            (START, START + PREFETCH),
            said="of the batches were ready",
        ),
        mistake(
            1,
            "interleaved, one file at a time",
            (DECODE, f"dataset = dataset.interleave({ONE_FILE}, cycle_length=1)"),
            said="0% of the files were started",
        ),
        mistake(
            5,
            "the first image is left out",
            (BATCH, BATCH.replace(".batch", ".skip(1).batch")),
            said="in epoch 1, 2, 3, 4, 5: 1 missing",
        ),
    ),
    together(
        mistake(
            2,
            "one order that is kept, and stirred",
            (SHUFFLE, "dataset = dataset.shuffle(64)"),
            (CACHE, f"    {SHUFFLE}\n{CACHE}"),
            said="on average over all pairs",
        ),
        mistake(
            1,
            "the shift in parallel, and not the files",
            (DECODE, "dataset = dataset.map(decode)"),
            (SHIFT, SHIFT.replace("(shift)", "(shift, num_parallel_calls=tf.data.AUTOTUNE)")),
            said="0% of the files were started",
        ),
        mistake(
            4,
            "before the cache",
            (PREFETCH, ""),
            (CACHE, PREFETCH + CACHE),
            said="of the batches were ready",
        ),
        mistake(
            5,
            "batches of one more",
            (BATCH, BATCH.replace("_size)", "_size + 1)")),
            said="batches of [21",
        ),
    ),
    together(
        mistake(
            3,
            "batches before the shift",
            (BATCH, ""),
            (SHIFT, BATCH + SHIFT),
            said="`shift` was given whole batches",
        ),
        spoiled=(1, 2, 4, 5),
    ),
)
