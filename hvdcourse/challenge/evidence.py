"""The judge's runs of a program: how they are set up, and what they left.

Each has a name:

- ``alone``, ``four``: a small gallery, on 1 and on 4 ranks;
- ``killed``, ``resumed``: the same on 2 ranks, all of them killed in epoch KILLED_IN, and resumed;
- ``baseline``: the untouched program, in one process, for its speed;
- ``large``: the whole gallery on 2 ranks, at LARGER times the batch of the untouched program.
"""

from dataclasses import dataclass, field

import numpy as np

from hvdcourse.checks.evidence import ObservedRun, Unmet

SMALL_EPOCHS, KILLED_IN = 3, 2
SINGLE_BATCH, LARGER = 16, 16


@dataclass(frozen=True)
class Gallery:
    """The images of a run: how many to train, thumbnails as ``all_views`` has them, and labels.

    ``train_views`` is empty where nobody asks which training images a rank saw.
    """

    painters: tuple[str, ...]
    count: int
    train_views: np.ndarray
    test_views: np.ndarray
    test_labels: np.ndarray


@dataclass
class Evidence:
    """The judge's runs by name, what each one's gallery was, and why a run is not there."""

    runs: dict[str, ObservedRun] = field(default_factory=dict)
    galleries: dict[str, Gallery] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def run(self, name: str) -> ObservedRun:
        """Return a run. Raises Unmet where it did not end as it must: no evidence, no points."""
        if name not in self.runs:
            reasons = self.failures.get(name, "it was not started").splitlines()
            raise Unmet(f"the run {name!r} ends well", reasons)
        return self.runs[name]
