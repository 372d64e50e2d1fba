"""Mistakes in ``ring_allreduce.py``."""

from mistakes.round import mistake, together

CUTS = "cuts = [k * length // size for k in range(size + 1)]"
SENDRECV = "communicator.Sendrecv(outgoing, dest=after, recvbuf=incoming, source=before)"
ADD = "vector[in_start:in_end] += incoming"
REDUCED = """        out_start, out_end = bounds[(rank + 1 - turn) % size]
        in_start, in_end = bounds[(rank - turn) % size]
"""
SCATTERED = """        out_start, out_end = bounds[(rank - turn) % size]
        in_start, in_end = bounds[(rank - turn - 1) % size]
"""

ROUNDS = (
    together(
        mistake(
            1,
            "the last chunk takes what is left",
            (CUTS, "cuts = [k * (length // size) for k in range(size)] + [length]"),
            said="differ by 1 at most in length",
        ),
        mistake(3, "nothing added", (ADD, ADD.replace("+=", "=")), said="holds the finished sums"),
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
            said="differ by 1 at most in length",
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
            said="On 3 ranks the script did not end well.",
        ),
        spoiled=(3, 4),
        crashes=True,
    ),
    together(
        mistake(
            1,
            "a start and a length",
            ("bounds = [(cuts[k], cuts[k + 1])", "bounds = [(cuts[k], cuts[k + 1] - cuts[k])"),
            said="without gaps",
        ),
        spoiled=(3, 4),
        crashes=True,
    ),
    together(
        mistake(
            2,
            "one's own numbers",
            (SENDRECV, f"{SENDRECV}; incoming[:] = np.resize(outgoing, incoming.shape)"),
            said="every rank receives what the rank before it has sent",
        ),
        spoiled=(3, 4),
    ),
)
