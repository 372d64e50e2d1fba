"""Judges the challenge's program at four stages, for the scores that lesson 7 shows.

``python tools/challenge_stages.py notebooks/recorded/challenge.jsonl`` judges the untouched
program, the solution, and two programs between them that are made of parts of both. It takes up to
five minutes on 2 cores and replaces the file; with names after the file, only those scores.
"""

import ast
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hvdcourse.challenge import leaderboard
from hvdcourse.challenge.judge import challenge
from hvdcourse.challenge.score import Score
from hvdcourse.checks.manifest import CHALLENGE
from hvdcourse.paths import SOLUTIONS

UNTOUCHED = (SOLUTIONS / f"{CHALLENGE}_before.py").read_text()
SOLUTION = (SOLUTIONS / f"{CHALLENGE}.py").read_text()
NETWORK = ("convolution", "residual_block", "residual_network")
# As the untouched program trains: with its rate, whatever the batch, and all pictures alike.
OPTIMIZER = (
    ("optimizer = make_optimizer(arguments, steps)",
     "optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.02, momentum=0.9))"),
    ("        class_weight=class_weights(labels, len(found.classes)),\n", ""),
)  # fmt: skip
# As the untouched program reads: one file after the other, in Python, anew in every epoch.
READING = """from PIL import Image


def read_images(paths, labels, pixels):
    def samples():
        for path, label in zip(paths, labels, strict=True):
            yield read_image(path, pixels), label

    signature = (tf.TensorSpec((pixels, pixels, 3), tf.float32), tf.TensorSpec((), tf.int64))
    return tf.data.Dataset.from_generator(samples, output_signature=signature)
"""
PREFETCHES = (("cardinality).prefetch(2)", "cardinality)"), (".prefetch(1), labels", ", labels"))


def source_of(text: str, name: str) -> str:
    """Return a function of a program as it is written there."""
    functions = [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)]
    (function,) = (each for each in functions if each.name == name)
    source = ast.get_source_segment(text, function)
    assert source is not None
    return source


def changed(text: str, *changes: tuple[str, str]) -> str:
    """Return a text with each first text, which stands there once, replaced by the second."""
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def programs() -> dict[str, str]:
    """Return the four programs by their names on the leaderboard."""
    network = [(source_of(SOLUTION, name), source_of(UNTOUCHED, name)) for name in NETWORK]
    fast = changed(SOLUTION, *network, *OPTIMIZER)
    reading = f"{READING}\n\n{source_of(UNTOUCHED, 'read_image')}"
    slow = changed(fast, (source_of(SOLUTION, "read_images"), reading), *PREFETCHES)
    return {
        "untouched": UNTOUCHED,
        "right, but slow": slow,
        "right and fast": fast,
        "solution": SOLUTION,
    }


@contextmanager
def judged(stage: str) -> Iterator[Score]:
    """Give the score of one of the four programs, while its file is there."""
    with tempfile.TemporaryDirectory(prefix="hvdcourse-stage-") as folder:
        Path(folder, f"{CHALLENGE}.py").write_text(programs()[stage])
        yield challenge(folder, say=print)


def main() -> None:
    board, names = Path(sys.argv[1]), sys.argv[2:]
    kept = board.read_text().splitlines() if board.exists() and names else []
    kept = [line for line in kept if json.loads(line)["name"] not in names]
    board.write_text("".join(f"{line}\n" for line in kept))
    for name in names or programs():
        with judged(name) as score:
            leaderboard.add(score, name, board)
        print(name, repr(score), *(part.words for part in score.parts if part.words), sep="\n")


if __name__ == "__main__":
    main()
