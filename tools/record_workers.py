"""Records how fast lesson 2's slow files arrive through workers of Keras, and of PyTorch.

    .uv/bin/uv run --no-sync --with torch python tools/record_workers.py RECORD

It takes a minute on a machine that does nothing else. PyTorch is no part of the course's setup.
"""

import json
import os
import sys
import tempfile
import time
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf
import torch
from PIL import Image
from torch.utils.data import DataLoader

from hvdcourse.data.digit_files import write_digits
from hvdcourse.study.device import time_workers
from hvdcourse.study.turns import in_turns

COUNTS, TURNS = (1, 2, 4, 8), 7
BATCH, SIDE, STEP_SECONDS = 32, 16, 0.02


class Files(tf.keras.utils.Sequence):
    """Lesson 2's batches, of a server that takes its time to answer."""

    def __init__(self, folder):
        files = write_digits(folder, train=480, test=1, pixels=256)
        self.paths, self.labels = files.train_paths, files.train_labels

    def __len__(self):
        return len(self.paths) // BATCH

    def __getitem__(self, number):
        rows = slice(number * BATCH, (number + 1) * BATCH)
        time.sleep(0.04)
        images = [np.asarray(Image.open(path).resize((SIDE, SIDE))) for path in self.paths[rows]]
        return np.stack(images)[..., np.newaxis] / 255, self.labels[rows]


def epoch_in_pytorch(files, workers):
    """Return the seconds of an epoch through PyTorch's loader, with a step that sleeps."""
    arriving = iter(DataLoader(files, batch_size=None, num_workers=workers))
    began = time.perf_counter()
    for _ in arriving:
        time.sleep(STEP_SECONDS)
    return time.perf_counter() - began


def main():
    record = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder) / "digits")
        pytorch = {count: partial(epoch_in_pytorch, files, count) for count in COUNTS}
        seconds = {
            "PyTorch": in_turns(pytorch, TURNS),
            "Keras": time_workers(files, COUNTS, STEP_SECONDS, TURNS),
        }
    found = {
        "machine": {
            "cores": len(os.sched_getaffinity(0)),
            "date": date.today().isoformat(),
            "torch": torch.__version__,
            "tensorflow": tf.__version__,
        },
        "images": len(files) * BATCH,
        "seconds": {
            name: {count: np.round(of_count, 4).tolist() for count, of_count in taken.items()}
            for name, taken in seconds.items()
        },
    }
    record.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
