"""What came of feeding a device for one epoch. Reading it needs no TensorFlow."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class FedEpoch:
    """One epoch, with an entry for each step.

    ``asked``, ``arrived`` and ``ended`` are times: when the next batch was asked for, when it was
    there, and when the device was done with it. ``samples`` holds by name what came with the
    batches, as lists with one entry a sample, without the images themselves; ``results`` what the
    device returned. ``resident_bytes`` is the process's memory at the end of the epoch,
    ``written_bytes`` what it has written into files by then, and ``pictures`` a number for each
    image that tells it from others, where they were measured.
    """

    asked: list[float] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    samples: dict[str, list[list[Any]]] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)
    pictures: list[list[int]] = field(default_factory=list)
    resident_bytes: int = 0
    written_bytes: int = 0

    @property
    def count(self) -> int:
        """How many samples came."""
        return sum(len(batch) for batch in next(iter(self.samples.values()), []))

    @property
    def seconds(self) -> float:
        """From the first question for a batch to the end of the last step."""
        return self.ended[-1] - self.asked[0] if self.ended else 0.0

    @property
    def images_per_second(self) -> float:
        """Samples over seconds."""
        return self.count / self.seconds if self.seconds else 0.0

    @property
    def busy(self) -> float:
        """The share of the time in which the device worked; it waited for the rest."""
        worked = np.sum(np.subtract(self.ended, self.arrived))
        return float(worked / self.seconds) if self.seconds else 0.0

    def column(self, name: str) -> np.ndarray:
        """Return what came under this name as one array, sample after sample."""
        return np.array([value for batch in self.samples.get(name, []) for value in batch])
