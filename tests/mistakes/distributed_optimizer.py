"""Mistakes in ``distributed_optimizer.py``."""

from mistakes.round import mistake, together

EACH = "link.allreduce(gradient)\n        gradient /= link.size"
FLAT = "unpack(buffer / link.size, gradients.values())"
PACKED = "buffer = pack(gradients.values())"
SENT = f"{PACKED}\n    link.allreduce(buffer)\n    {FLAT}"
FITS = "if sizes[name] > free:"
BUCKET = "link.allreduce(buffer)\n        unpack(buffer / link.size, members)"
STARTED = "messages.append((wire, link.start(wire)))"
COMPRESSED = "compress(number, pack([gradients[member] for member in buckets[number]]))"
WAITED = "message.wait()\n        # 16 bits would round the mean once more.\n        "
MEAN = "unpack(wire.astype(np.float32) / link.size, [gradients[name] for name in bucket])"
WANTED = "wanted = buffer + self.lost.get(number, 0)"
BY_LENGTH = WANTED.replace("number", "len(buffer)")
LOST = "self.lost[number] = wanted - wire"

ROUNDS = (
    together(
        mistake(1, "sums", (EACH, "link.allreduce(gradient)"), said="with sums, 3 times as large"),
        mistake(2, "sums", (FLAT, "unpack(buffer, gradients.values())"), said="with sums"),
        mistake(
            3,
            "sums",
            (BUCKET, "link.allreduce(buffer)\n        unpack(buffer, members)"),
            said="with sums",
        ),
        mistake(
            4,
            "the whole backward pass first",
            ("for name, gradient in backward:", "for name, gradient in list(backward):"),
            said=("every bucket leaves when its last gradient is ready", "left after"),
        ),
        mistake(
            5,
            "no feedback",
            (WANTED, "wanted = buffer"),
            said="rounded to 16 bits and nothing else",
        ),
    ),
    together(
        mistake(1, "not averaged", (EACH, "pass"), said="with only its own gradients"),
        mistake(
            2,
            "numbers of 64 bits",
            (PACKED, f"{PACKED}.astype(np.float64)"),
            said=("every rank sends in each step 1 message of", "sent 1 message of"),
        ),
        mistake(
            3,
            "a message for each gradient",
            (BUCKET, "for member in members:\n            link.allreduce(member / link.size)"),
            said="with only its own gradients",
        ),
        mistake(
            4,
            "waits at once",
            (STARTED, f"{STARTED}\n            messages[-1][1].wait()"),
            said="left after",
        ),
        mistake(
            5, "subtracted", (LOST, LOST.replace("wanted - wire", "wire - wanted")), said="off"
        ),
    ),
    together(
        mistake(
            3,
            "a gradient that just fits opens a bucket",
            (FITS, FITS.replace(">", ">=")),
            said=("buckets hold all gradients, none", "buckets of"),
        ),
        spoiled=(4, 5),
    ),
    together(
        mistake(
            1,
            "a new array",
            (EACH, EACH.replace("gradient /=", "gradient = gradient /")),
            said="with sums",
        ),
        mistake(2, "never unpacked", (FLAT, "buffer /= link.size"), said="only its own gradients"),
        mistake(
            3,
            "the order of the layers",
            ("for name in reversed(sizes):", "for name in sizes:"),
            said=(
                "all stand in the order in which they become ready: layer_",
                "its buckets are layer_1/kernel, layer_1/bias",
            ),
        ),
        spoiled=(4, 5),
    ),
    together(
        mistake(
            1,
            "divided by the number of gradients",
            (EACH, EACH.replace("link.size", "len(gradients)")),
            said="of the way they go",
        ),
        mistake(
            2,
            "unpacked from the other end",
            (FLAT, "unpack(buffer[::-1] / link.size, gradients.values())"),
            said="of the way they go",
        ),
        mistake(
            3,
            "closed too late",
            (FITS, "if free <= 0:"),
            said=("buckets hold all gradients, none", "buckets of"),
        ),
        spoiled=(4, 5),
    ),
    together(
        mistake(
            1,
            "kernels alone",
            (EACH, f"if gradient.ndim == 1: continue\n        {EACH}"),
            said="of the way they go",
        ),
        mistake(
            2,
            "a message for each gradient",
            (SENT, f"for gradient in gradients.values():\n        {EACH}"),
            said=("every rank sends in each step 1 message of", "messages of"),
        ),
        mistake(
            3,
            "one gradient a bucket",
            (FITS, "if True:"),
            said=("buckets hold all gradients", "buckets of"),
        ),
        spoiled=(4, 5),
    ),
    together(
        mistake(
            1,
            "past the link",
            (
                EACH,
                "from mpi4py import MPI\n        MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, "
                "gradient)\n        gradient /= link.size",
            ),
            said="of which the link carried 0",
        ),
        mistake(
            3,
            "every bucket twice",
            (BUCKET, f"link.allreduce(buffer.copy())\n        {BUCKET}"),
            said=("messages, one for each bucket", "messages of"),
        ),
        mistake(4, "not waited for", (f"        {WAITED}", "        "), said="it did not wait for"),
        spoiled=(5,),
    ),
    together(
        mistake(
            4,
            "unpacked too early",
            (f"{WAITED}{MEAN}", f"{MEAN}\n        message.wait()"),
            said="of the way they go",
        ),
        spoiled=(5,),
    ),
    together(
        mistake(
            4,
            "the last message alone",
            ("        message.wait()\n", "        messages[-1][1].wait()\n"),
            said="it did not wait for",
        ),
        spoiled=(5,),
    ),
    together(
        mistake(
            4,
            "compress is never called",
            (COMPRESSED, COMPRESSED.removeprefix("compress(number, ").removesuffix(")")),
            said=("calls compress in each step once for each bucket", "compress was never called"),
        ),
        spoiled=(5,),
    ),
    together(
        mistake(
            4,
            "the number of another bucket",
            (COMPRESSED, COMPRESSED.replace("(number", "(number + 1")),
            said="compress was called with 1, 2, 3",
        ),
    ),
    together(
        mistake(
            3,
            "an empty first bucket",
            ("buckets, free = [], 0", "buckets, free = [[]], limit"),
            said="need at least one array to concatenate",
        ),
        crashes=True,
    ),
    together(
        mistake(5, "the last loss alone", (LOST, LOST.replace("wanted", "buffer")), said="off"),
    ),
    together(
        mistake(
            5,
            "the loss in 16 bits",
            (LOST, "self.lost[number] = (wanted - wire).astype(np.float16)"),
            said=(
                "half of what they are off by where nothing is kept",
                "as if gradients were rounded to 16 bits and nothing else",
            ),
        ),
    ),
    together(
        mistake(
            5,
            "rounded, and 32 bits again",
            ("        return wire\n", "        return wire.astype(np.float32)\n"),
            said=("messages, one for each bucket, of", "messages of"),
        ),
    ),
    together(
        mistake(
            5,
            "a loss for each length",
            (WANTED, BY_LENGTH),
            (LOST, LOST.replace("number", "len(buffer)")),
            said=("off by", "whose buckets are equally long"),
        ),
    ),
)
