r"""The gradient noise scale, from what Horovod has anyway: McCandlish et al., arXiv:1812.06162.

A gradient over B images, g_B, is the true gradient G plus noise of the covariance Σ / B:

    E ‖g_B‖² = ‖G‖² + tr Σ / B

Each of N ranks has a gradient over b images; their average is one over B = N b. Two equations for
two unknowns, whose solution has no bias (appendix A.1):

    ‖G‖²  ≈ (B ‖g_B‖² − b ‖g_b‖²) / (B − b)
    tr Σ  ≈ (‖g_b‖² − ‖g_B‖²) / (1/b − 1/B)

The simple noise scale tr Σ / ‖G‖² has the unit of a batch size. A ratio of two noisy numbers is
biased, so that both are averaged over many steps before they are divided.
"""

from collections.abc import Sequence

import numpy as np


def unbiased(own: float, mean: float, batch: int, ranks: int) -> tuple[float, float]:
    """Return estimates of ‖G‖² and tr Σ of one step.

    Args:
        own: the ranks' own squared gradient norms ‖g_b‖², averaged over the ranks.
        mean: the squared norm ‖g_B‖² of the ranks' average gradient.
        batch: b, the images of each rank.
        ranks: N, at least 2.
    """
    whole = ranks * batch
    signal = (whole * mean - batch * own) / (whole - batch)
    noise = (own - mean) / (1 / batch - 1 / whole)
    return signal, noise


def noise_scale(
    own: Sequence[float | None], mean: Sequence[float | None], batch: int, ranks: int
) -> float:
    """Return tr Σ / ‖G‖² over several steps, in images; nan where ‖G‖² comes out below 0.

    Arguments are those of ``unbiased``, for each step. It is nan as well where a step's norm was
    not finite, for which a record holds None.
    """
    average_own, average_mean = (
        float(np.mean(np.asarray(norms, np.float64))) for norms in (own, mean)
    )
    signal, noise = unbiased(average_own, average_mean, batch, ranks)
    return noise / signal if signal > 0 else float("nan")
