"""The critical batch size from steps to a target: McCandlish et al., arXiv:1812.06162, section 2.3.

The steps S and the images E = B S that a training needs to a target, at batch size B:

    S = S_min (1 + B_crit / B)        E = E_min (1 + B / B_crit)        E_min = S_min B_crit

At B = B_crit both are twice the least that is possible: half of the images teach what the others
teach already. E_min / E, the efficiency, is a half there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hvdcourse.errors import BadInput


@dataclass(frozen=True)
class StepsFit:
    """The fitted law: ``least_steps`` is S_min, ``critical_batch`` B_crit, in images."""

    least_steps: float
    critical_batch: float

    def steps(self, batch: float | np.ndarray) -> float | np.ndarray:
        """Return the steps that the law gives for a batch size, or for an array of them."""
        return self.least_steps * (1 + self.critical_batch / batch)

    def efficiency(self, batch: float) -> float:
        """Return E_min / E, the part of the images that a small batch would need, too."""
        return 1 / (1 + batch / self.critical_batch)


def fit_steps(batches: Sequence[float], steps: Sequence[float]) -> StepsFit:
    """Fit the law to steps measured at batch sizes, by least squares of the relative errors.

    Raises:
        BadInput: fewer than 3 points, or points that do not fall and level off as the law does.
    """
    if len(batches) < 3:
        raise BadInput(f"two numbers are fitted: give at least 3 points; got {len(batches)}")
    counts = np.asarray(steps, float)
    slope, least = np.polyfit(1 / np.asarray(batches, float), counts, 1, w=1 / counts)
    if slope <= 0 or least <= 0:
        raise BadInput("the steps do not fall and level off as the batch grows: no law fits them")
    return StepsFit(float(least), float(slope / least))
