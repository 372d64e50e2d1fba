"""How a program classified the test images in the large run: by painter, and epoch by epoch."""

from dataclasses import dataclass

import numpy as np
from rich.table import Table

from hvdcourse.challenge.evidence import Evidence
from hvdcourse.challenge.measures import confusion

_CURVES = ("loss", "val_loss", "accuracy", "val_accuracy")


@dataclass(frozen=True)
class Report:
    """``confusion[i][j]`` counts the test images of painter i that were given painter j's name.

    ``history`` has a list with one entry an epoch for each metric that the program reported.
    """

    painters: tuple[str, ...]
    confusion: list[list[int]]
    history: dict[str, list[float]]

    @property
    def precision(self) -> np.ndarray:
        """For each painter, the share of the images with the name that are right; 0 for none."""
        counts = np.array(self.confusion)
        return counts.diagonal() / counts.sum(axis=0).clip(1)

    @property
    def recall(self) -> np.ndarray:
        """For each painter, the share of the painter's images that are right; 0 for none."""
        counts = np.array(self.confusion)
        return counts.diagonal() / counts.sum(axis=1).clip(1)

    def table(self) -> Table:
        """Return precision and recall by painter, and what most of a painter's errors are."""
        shown = Table("painter", "precision", "recall", "test images", "most often taken for")
        counts = np.array(self.confusion)
        errors = counts * (1 - np.eye(len(counts), dtype=int))
        for n, name in enumerate(self.painters):
            worst = int(errors[n].argmax())
            taken = f"{self.painters[worst]} ({errors[n, worst]})" if errors[n, worst] else ""
            share = (f"{measure[n]:.2f}" for measure in (self.precision, self.recall))
            shown.add_row(name, *share, str(counts[n].sum()), taken)
        return shown


def report_of(evidence: Evidence) -> Report | None:
    """Return the report of the run on all images; None where it did not end as it must."""
    run = evidence.runs.get("large")
    if run is None:
        return None
    gallery = evidence.galleries["large"]
    history = {name: curve for name, curve in run.result.history.items() if name in _CURVES}
    try:
        return Report(gallery.painters, confusion(run, gallery).tolist(), history)
    except LookupError:  # a model with more outputs than painters
        return None
