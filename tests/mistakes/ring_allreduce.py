"""Mistakes in ``ring_allreduce.py``."""

from mistakes.round import mistake, together

CUTS = "cuts = [k * length // size for k in range(size + 1)]"
SENDRECV = "communicator.Sendrecv(outgoing, dest=after, recvbuf=incoming, source=before)"
ADD = "vector[in_start:in_end] += incoming"
REDUCED = """        out_start, out_end = bounds[(rank + 1 - turn) % size]
        in_start, in_end = bounds[(rank - turn) % size]
"""
INTO_PLACE = "exchange(vector[out_start:out_end], vector[in_start:in_end], communicator)"
ADDED = (
    "incoming = np.empty(in_end - in_start); exchange(vector[out_start:out_end], incoming, "
    "communicator); vector[in_start:in_end] += incoming"
)
SCATTERED = """        out_start, out_end = bounds[(rank - turn) % size]
        in_start, in_end = bounds[(rank - turn - 1) % size]
"""

ROUNDS = (
    together(
        mistake(
            1,
            "the last chunk takes what is left",
            (CUTS, "cuts = [k * (length // size) for k in range(size)] + [length]"),
            said=("differ in length by at most 1", "the chunks have"),
        ),
        mistake(
            3, "nothing added", (ADD, ADD.replace("+=", "=")), said="that of chunk 1 is missing"
        ),
        mistake(
            4,
            "one turn too few",
            (
                f"range(size - 1):\n{REDUCED}",
                f"range(size - 2):\n{REDUCED}",
            ),
            said="sent 0 bytes in 0 messages",
        ),
    ),
    together(
        mistake(
            1,
            "all chunks but the last are rounded up",
            (CUTS, "cuts = [min(length, k * -(-length // size)) for k in range(size + 1)]"),
            said=("differ in length by at most 1", "the chunks have "),
        ),
        mistake(
            3,
            "one turn too few",
            (f"range(size - 1):\n{SCATTERED}", f"range(size - 2):\n{SCATTERED}"),
            said="that of chunk 0 is missing",
        ),
        mistake(
            4,
            "added instead of put in its place",
            (INTO_PLACE, ADDED),
            said="not finished: chunk",
        ),
    ),
    together(
        mistake(
            2,
            "the wrong way round",
            (
                SENDRECV,
                "communicator.Sendrecv(outgoing, dest=before, recvbuf=incoming, source=after)",
            ),
            said="On 3 ranks the script did not finish.",
        ),
        spoiled=(3, 4),
        crashes=True,
    ),
    together(
        mistake(
            1,
            "a start and a length",
            ("bounds = [(cuts[k], cuts[k + 1])", "bounds = [(cuts[k], cuts[k + 1] - cuts[k])"),
            said="the chunks go from 0 to",
        ),
        spoiled=(3, 4),
        crashes=True,
    ),
    together(
        mistake(
            1,
            "what does not divide is lost",
            (CUTS, "cuts = [k * (length // size) for k in range(size + 1)]"),
            said="the chunks go from 0 to",
        ),
        mistake(
            2,
            "one's own numbers",
            (SENDRECV, f"{SENDRECV}; incoming[:] = np.resize(outgoing, incoming.shape)"),
            said="rank 0: received its own numbers",
        ),
        spoiled=(3, 4),
    ),
    together(
        mistake(
            3,
            "one chunk too far",
            (
                SCATTERED,
                SCATTERED.replace("(rank - turn - 1)", "(rank - turn - 2)").replace(
                    "(rank - turn)", "(rank - turn - 1)"
                ),
            ),
            said="that of chunk 1 is missing",
        ),
        mistake(
            4,
            "in the order of step 3",
            (REDUCED, SCATTERED),
            said="not finished: chunk",
        ),
    ),
    together(
        mistake(
            1,
            "multiples of a length in floating point, rounded down",
            (CUTS, "cuts = [int(k * (length / size)) for k in range(size + 1)]"),
            said=("7 chunks hold all of", "the chunks go from 0 to"),
        ),
        mistake(
            2,
            "a message that nobody waits for",
            (SENDRECV, "communicator.Isend(outgoing, after); communicator.Recv(incoming, before)"),
            said="never waited for",
        ),
        mistake(
            4,
            "in a copy",
            (
                "    allgather(vector, bounds, communicator)\n",
                "    vector = vector.copy()\n    allgather(vector, bounds, communicator)\n",
            ),
            said="not finished: chunk",
        ),
        spoiled=(3,),
    ),
    together(
        mistake(
            2,
            "whole numbers",
            (
                SENDRECV,
                "arrived = incoming.astype(int); communicator.Sendrecv(outgoing.astype(int), "
                "after, recvbuf=arrived, source=before); incoming[:] = arrived",
            ),
            said="which no rank has sent",
        ),
        spoiled=(3, 4),
    ),
    together(
        mistake(
            1,
            "2 for the size",
            (CUTS, "size = 2; cuts = [k * length // size for k in range(size + 1)]"),
            said=("7 chunks hold all of", "has 2 chunks"),
        ),
        mistake(
            3, "added twice", (ADD, ADD.replace("+=", "+= 2 *")), said="that of chunk 1 is missing"
        ),
        mistake(
            4,
            "one turn too many",
            (f"range(size - 1):\n{REDUCED}", f"range(size):\n{REDUCED}"),
            said="in 2 messages",
        ),
        crashes=True,
    ),
    together(
        mistake(
            3,
            "in a copy",
            ("    scatter_reduce(vector, bounds", "    scatter_reduce(vector.copy(), bounds"),
            said="that of chunk",
        ),
        spoiled=(4,),
    ),
    together(
        mistake(
            2,
            "a rank after the last one",
            ("(rank + 1) % size, (rank - 1) % size", "rank + 1, rank - 1"),
            said=("MPI_ERR_RANK: invalid rank", SENDRECV),
        ),
        crashes=True,
        only=True,
    ),
    together(
        mistake(
            3,
            "into the chunk that was sent",
            (SCATTERED, SCATTERED.replace("turn - 1)", "turn)")),
            said="message truncated",
        ),
        crashes=True,
        only=True,
    ),
)
