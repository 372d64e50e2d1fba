"""Mistakes in ``new_exercise.py``."""

from mistakes.round import mistake, together

MEAN = "hvd.allreduce(own, op=hvd.Average)"

ROUNDS = (
    together(
        mistake(1, "summed", (MEAN, MEAN.replace("Average", "Sum")), said="not divided by their"),
    ),
)
