"""Mistakes in ``mpi_concepts.py``."""

from mistakes.round import mistake, together

PLACE = "rank, size, local_rank = hvd.rank(), hvd.size(), hvd.local_rank()"
ROWS = "rows = np.arange(rank, len(images), size)"
BROADCAST = "direction = hvd.broadcast(direction, root_rank=0).numpy()"
MEAN = "mean = total / count"
GATHER = "all_scores = hvd.allgather(scores).numpy()"
DESTINATION = "destination = labels[rows] % size"
ALLTOALL = "regrouped = hvd.alltoall(in_order, splits=splits.astype(np.int32))[0].numpy()"
PART = "my_brightness = hvd.reducescatter(brightness, op=hvd.Sum).numpy()"
WRITER = "    if rank == 0:\n        write_summary"
BARRIER = '    hvd.allreduce(np.float32(0), name="barrier")\n'
# With a collective that says nothing.
BY_ITSELF = (
    "all_scores = np.concatenate([(images[r::size] - mean) @ direction for r in range(size)])"
    '; hvd.allreduce(np.float32(0), name="nothing")'
)

ROUNDS = (
    together(
        mistake(
            1,
            "the rank for the local rank",
            (PLACE, PLACE.replace("hvd.local_rank()", "hvd.rank()")),
            said=("their local ranks 0, 1, 0", "rank 2: reported {'rank': 2, 'size': 3, 'local"),
        ),
        mistake(
            2,
            "the local rank for the rank",
            (ROWS, "rows = np.arange(hvd.local_rank(), len(images), size)"),
            said="with several ranks: ",
        ),
        mistake(
            3,
            "the average of all directions",
            (BROADCAST, "direction = hvd.allreduce(direction).numpy()"),
            said="rank 0: uses the mean of all ranks' directions",
        ),
        mistake(
            4,
            "one's own share alone",
            (MEAN, "mean = images[rows].mean(axis=0)"),
            said="the mean of its own share only",
        ),
        mistake(5, "no gathering", (GATHER, "all_scores = scores"), said="only its own scores"),
        mistake(
            6,
            "all rows, by one's own labels",
            (
                ALLTOALL,
                "every = hvd.allgather(rows).numpy(); regrouped = every[labels[every]"
                " % size == rank]",
            ),
            said=("on the rank that held them", "that belong to other ranks"),
        ),
        mistake(
            7,
            "the average",
            (PART, PART.replace(", op=hvd.Sum", "")),
            said="the average over the ranks, not the sum",
        ),
        mistake(
            8, "no barrier", (BARRIER, ""), said=("rank 1: read 0 lines", "it called no collective")
        ),
    ),
    together(
        mistake(
            1,
            "the cross rank for the local rank",
            (PLACE, PLACE.replace("hvd.local_rank()", "hvd.cross_rank()")),
            said="rank 2: reported {'rank': 2, 'size': 3, 'local_rank': 1}",
        ),
        mistake(2, "all rows everywhere", (ROWS, "rows = np.arange(len(images))"), said="several"),
        mistake(
            3,
            "one seed, and no broadcast",
            (BROADCAST, "pass"),
            ("default_rng()", "default_rng(5)"),
            said="drew the same as rank 0",
        ),
        mistake(4, "no division", (MEAN, "mean = total"), said="not divided by their number"),
        mistake(
            5,
            "another order",
            (GATHER, "all_scores = np.sort(hvd.allgather(scores).numpy())"),
            said="not in the order of ranks",
        ),
        mistake(
            6,
            "by itself",
            (ALLTOALL, "regrouped = np.flatnonzero(labels % size == rank)"),
            said="it called no collective",
        ),
        mistake(
            7,
            "everything for everyone",
            (PART, "my_brightness = hvd.allreduce(brightness, op=hvd.Sum).numpy()"),
            said="the sums of all 64 pixels, not only of its own part",
        ),
        mistake(
            8,
            "every rank writes",
            (WRITER, WRITER.replace("rank == 0", "True")),
            said="afterwards 3 lines stood there",
        ),
    ),
    together(
        mistake(
            1,
            "the local size for the local rank",
            (PLACE, PLACE.replace("hvd.local_rank()", "hvd.local_size()")),
            said="rank 0: reported {'rank': 0, 'size': 3, 'local_rank': 2}",
        ),
        mistake(
            2,
            "the last image is lost",
            (ROWS, ROWS.replace("len(images)", "len(images) - 1")),
            said="images without a rank: 1, with several ranks: 0",
        ),
        mistake(
            3,
            "the result is not used",
            (BROADCAST, "hvd.broadcast(direction, root_rank=0)"),
            said="rank 1: uses the one that it has drawn itself",
        ),
        mistake(
            4,
            "from one's own copy",
            (MEAN, "mean = images.mean(axis=0)"),
            said="rank 1: has the mean of its own copy of all images",
        ),
        mistake(5, "from one's own copy", (GATHER, BY_ITSELF), said="numbers instead of"),
        mistake(
            6,
            "rows that are not sorted by destination",
            ('rows[np.argsort(destination, kind="stable")]', "rows"),
            said="that belong to other ranks",
        ),
        mistake(
            7,
            "nothing added",
            (PART, "my_brightness = np.array_split(brightness, size)[rank]"),
            said="its part of its own brightness, to which no other rank's was added",
        ),
        mistake(
            8,
            "one writer a host",
            (WRITER, WRITER.replace("rank == 0", "hvd.local_rank() == 0")),
            said="afterwards 2 lines stood there",
        ),
    ),
    together(
        mistake(
            1,
            "0 for the local rank",
            (PLACE, PLACE.replace("hvd.local_rank()", "0")),
            said="rank 1: reported {'rank': 1, 'size': 3, 'local_rank': 0}",
        ),
        mistake(
            2,
            "the last rank gets what is left over",
            (
                ROWS,
                "each = len(images) // size; end = (rank + 1) * each if rank < size - 1 else "
                "len(images); rows = np.arange(rank * each, end)",
            ),
            said=("the shares differ by at most one image", "rank 2: "),
        ),
        mistake(
            3,
            "the last rank is the root",
            (BROADCAST, BROADCAST.replace("=0", "=size - 1")),
            said="rank 0: uses the one of rank 2",
        ),
        mistake(
            4,
            "divided as if all shares were as long as one's own",
            (MEAN, "mean = total / (len(rows) * size)"),
            said="the sum divided as if all ranks had as many images as this one",
        ),
        mistake(
            5,
            "a text",
            (GATHER, 'all_scores = "all of them"'),
            said=("every rank reports 'all_scores' as a list of numbers", "'all of them'"),
        ),
        mistake(
            6,
            "the next rank",
            (DESTINATION, "destination = (labels[rows] + 1) % size"),
            said="missing",
        ),
        mistake(
            7,
            "every size-th pixel",
            (PART, "my_brightness = hvd.allreduce(brightness, op=hvd.Sum).numpy()[rank::size]"),
            said="every size-th pixel, not pixels that follow each other",
        ),
        mistake(
            8,
            "a barrier before the writing",
            (WRITER, f"{BARRIER}{WRITER}".replace("barrier", "early")),
            (BARRIER, ""),
            said="rank 1: read 0 lines",
        ),
    ),
    together(
        mistake(
            1,
            "the rank on two equal hosts",
            (PLACE, PLACE.replace("hvd.local_rank()", "hvd.rank() % 2")),
            said=("on 5 ranks on 2 hosts (1 + 4):", "rank 1: reported {'rank': 1, 'size': 5, 'lo"),
        ),
        mistake(
            2,
            "the first ranks get one more, the last one what is left",
            (
                ROWS,
                "each = -(-len(images) // size); rows = np.arange(len(images))"
                "[rank * each : (rank + 1) * each]",
            ),
            said=("the shares differ by at most one image", "rank 4: "),
        ),
        mistake(
            4,
            "the mean of means",
            (MEAN, "mean = hvd.allreduce(images[rows].mean(axis=0), op=hvd.Average).numpy()"),
            said="the mean of the ranks' means, which ignores that shares differ in length",
        ),
        mistake(
            5,
            "gathered twice",
            (GATHER, "all_scores = hvd.allgather(hvd.allgather(scores)).numpy()"),
            said="numbers instead of",
        ),
        mistake(6, "no regrouping", (ALLTOALL, "regrouped = rows"), said="it called no collective"),
        mistake(
            7,
            "one's own brightness",
            (PART, "my_brightness = brightness"),
            said="its own brightness, to which no other rank's was added",
        ),
        mistake(
            8,
            "a sleep for the barrier",
            (BARRIER, "    time.sleep(2)\n"),
            said="it called no collective",
        ),
    ),
    together(
        mistake(
            1,
            "the local rank for the rank",
            (PLACE, PLACE.replace("hvd.rank()", "hvd.local_rank()")),
            said="rank 2: reported {'rank': 0, 'size': 3, 'local_rank': 0}",
        ),
        spoiled=(2, 6, 7, 8),
    ),
    together(
        mistake(3, "root 1", (BROADCAST, BROADCAST.replace("=0", "=1")), said="the one of rank 1"),
        mistake(
            6,
            "2 for the size",
            (DESTINATION, DESTINATION.replace("size", "2")),
            said="rank 2: has 0 images",
        ),
        mistake(
            8,
            "a barrier before the writing, and a sleep",
            (WRITER, f"{BARRIER}{WRITER}".replace("barrier", "early")),
            (BARRIER, "    time.sleep(2)\n"),
            said="the last collective was over before the summary was written",
        ),
        crashes=True,
    ),
    together(
        mistake(
            4,
            "divided by how many images were asked for",
            (MEAN, "mean = total / arguments.images"),
            said="the sum divided by --images, though there are fewer",
        ),
        mistake(
            5,
            "another direction than the reported one",
            (BROADCAST, f"shared_{BROADCAST}"),
            ('report("direction", direction)', 'report("direction", shared_direction)'),
            said="has scores of another mean or direction",
        ),
        mistake(
            6,
            "rows in one byte",
            (ALLTOALL, ALLTOALL.replace("in_order,", "in_order.astype(np.uint8),")),
            said="that belong to other ranks",
        ),
        mistake(
            7,
            "rank 0 gets all pixels that are left over",
            (
                PART,
                "each, more = divmod(64, size); my_brightness = hvd.allreduce(brightness, op="
                "hvd.Sum).numpy()[rank * each + more * (rank > 0) : (rank + 1) * each + more]",
            ),
            said=("on 5 ranks on 2 hosts (1 + 4):", "rank 0: has 16 numbers instead of 13"),
        ),
        mistake(
            8,
            "a barrier before the writing, and a look for the file",
            (WRITER, f"{BARRIER}{WRITER}".replace("barrier", "early")),
            (BARRIER, "    while not arguments.summary.exists():\n        time.sleep(0.1)\n"),
            said=(
                "rank 1: read 0 lines",
                "afterwards 1 line stood there, below one",
            ),
        ),
    ),
    together(
        mistake(
            5,
            "another mean than the reported one",
            ('report("mean", mean)', 'report("mean", mean); mean = images[rows].mean(axis=0)'),
            said="has scores of another mean or direction",
        ),
        mistake(
            6,
            "too few splits where the last rank gets nothing",
            (", minlength=size)", ")"),
            said="Number of entries in splits does not equal number of workers",
        ),
        mistake(
            8,
            "written only where no earlier run has",
            (WRITER, WRITER.replace("0:", "0 and not arguments.summary.exists():")),
            said="afterwards 0 lines stood there, below one that the check",
        ),
        crashes=True,
    ),
    # Plain Python numbers and tensors where Horovod or NumPy wants an array.
    together(
        mistake(
            8,
            "a number for an array",
            (BARRIER, BARRIER.replace("np.float32(0)", "0.0")),
            said="'float' object has no attribute 'dtype'",
        ),
        crashes=True,
        only=True,
    ),
    together(
        mistake(
            3,
            "a tensor for an array",
            (BROADCAST, BROADCAST.replace(".numpy()", "")),
            said="has different ndims",
        ),
        crashes=True,
        only=True,
    ),
    together(
        mistake(
            4,
            "tensors of two types",
            (MEAN, "mean = hvd.allreduce(total) / hvd.allreduce(np.array(len(rows)))"),
            said="must have the same dtype",
        ),
        crashes=True,
        only=True,
    ),
    together(
        mistake(
            6,
            "splits of 64 bits",
            (ALLTOALL, ALLTOALL.replace(".astype(np.int32)", "")),
            said="was expected to be a int32 tensor",
        ),
        crashes=True,
        only=True,
    ),
    together(
        mistake(
            6,
            "both of what it returns",
            (ALLTOALL, ALLTOALL.replace("[0].numpy()", "")),
            said=("every rank reports 'regrouped' as a list of numbers", "rank 0: reported "),
        ),
        only=True,
    ),
    together(
        mistake(
            8,
            "a barrier that this module does not have",
            (BARRIER, "    hvd.barrier()\n"),
            said="has no attribute 'barrier'",
        ),
        crashes=True,
        only=True,
    ),
)
