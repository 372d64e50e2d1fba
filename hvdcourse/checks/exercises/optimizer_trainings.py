"""What ``distributed_optimizer.py`` showed of its five trainings, and one process's weights."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import ObservedRank, ObservedRun, demand_of_run, percent
from hvdcourse.checks.exercises.optimizer_settings import Setting
from hvdcourse.training.layered import random_samples

WAYS = ("each", "flat", "buckets", "overlapped", "fp16")
# Of the way that the weights went; float32 rounds a hundred times finer.
TOLERANCE = 1e-4
# Of what rounding alone does to the weights; the solution leaves about a quarter.
SHARE_WITH_FEEDBACK = 0.5


@dataclass(frozen=True)
class Training:
    """What a rank showed of one training: weights, the last step, and all that MPI sent in it."""

    weights: np.ndarray
    step: dict[str, Any]
    collectives: list[dict[str, Any]]


def trainings(run: ObservedRun, way: str) -> list[Training]:
    """Return each rank's training with one way to average. Raises Unmet where one misses."""
    return [training_of(rank, WAYS.index(way)) for rank in run.ranks]


def training_of(rank: ObservedRank, place: int) -> Training:
    kept = rank.all_reported("trained")
    demand_of_run(
        f"every rank trains in {len(WAYS)} ways",
        rank.all_reported("way") == list(WAYS) and len(kept) == len(WAYS),
        f"rank {rank.rank}: kept {len(kept)} trainings",
    )
    weights = np.array(kept[place]["weights"], np.float64)
    return Training(weights, kept[place]["step"], rank.communicated("way", "trained")[place])


Combine = Callable[[list[np.ndarray]], np.ndarray]


@functools.lru_cache(maxsize=32)
def weights_after(setting: Setting, combine: Combine, ranks: tuple[int, ...]) -> np.ndarray:
    """Return all weights after a training in which these ranks' gradients are combined so."""
    network = setting.network()
    for step in range(setting.steps):
        own = [dict(network.backward(*samples(setting, step, rank))) for rank in ranks]
        network.update(
            {name: combine([each[name] for each in own]) for name in own[0]}, setting.learning_rate
        )
    return network.all_weights().astype(np.float64)


def samples(setting: Setting, step: int, *ranks: int) -> tuple[np.ndarray, np.ndarray]:
    return random_samples(list(setting.widths), setting.seed, step, list(ranks), setting.samples)


@functools.lru_cache(maxsize=32)
def single_process(setting: Setting) -> np.ndarray:
    """Return all weights after one process has trained on all ranks' samples at once."""
    network = setting.network()
    for step in range(setting.steps):
        batch = samples(setting, step, *range(setting.ranks))
        network.update(dict(network.backward(*batch)), setting.learning_rate)
    return network.all_weights().astype(np.float64)


def mean(gradients: list[np.ndarray]) -> np.ndarray:
    return np.mean(gradients, axis=0)


def total(gradients: list[np.ndarray]) -> np.ndarray:
    return np.sum(gradients, axis=0)


def rounded(gradients: list[np.ndarray]) -> np.ndarray:
    """Return the mean of gradients that were rounded to 16 bits and added up in these."""
    halves = np.sum([gradient.astype(np.float16) for gradient in gradients], axis=0)
    return halves.astype(np.float32) / len(gradients)


def distance_from_single_process(weights: np.ndarray, setting: Setting) -> float:
    """Return how far weights are from the single process's, as a share of the way these went."""
    if weights.shape != single_process(setting).shape or not np.isfinite(weights).all():
        return np.inf
    way = np.linalg.norm(single_process(setting) - setting.network().all_weights())
    return float(np.linalg.norm(weights - single_process(setting)) / way)


def rounding_alone(setting: Setting) -> float:
    """Return the distance of a training whose gradients are rounded to 16 bits, and no more."""
    return distance_from_single_process(
        weights_after(setting, rounded, tuple(range(setting.ranks))), setting
    )


def lost_of_another_bucket(weights: np.ndarray, setting: Setting) -> str:
    """Say which kernels are off where these are those whose buckets are equally long."""
    sizes, single = setting.network().sizes, single_process(setting)
    if weights.shape != single.shape:
        return ""
    largest = [name for name in sizes if sizes[name] == max(sizes.values())]
    alike = np.concatenate([np.full(sizes[name] // 4, name in largest) for name in sizes])
    alone = weights_after(setting, rounded, tuple(range(setting.ranks)))
    of_alike, of_others = (
        np.linalg.norm((weights - single)[part]) / np.linalg.norm((alone - single)[part])
        for part in (alike, ~alike)
    )
    named = f", most of it in {' and '.join(largest)}, whose buckets are equally long"
    return named if of_alike > 1.5 * of_others else ""


def what_was_trained(weights: np.ndarray, rank: int, setting: Setting) -> str:
    """Say which training a rank's weights come from."""
    if distance_from_single_process(weights, setting) <= TOLERANCE:
        return "its weights are the single process's"
    everyone = tuple(range(setting.ranks))
    known: dict[str, tuple[Combine, tuple[int, ...]]] = {
        "it trained with only its own gradients": (mean, (rank,)),
        f"it trained with sums, {setting.ranks} times as large as means": (total, everyone),
        "it trained as if gradients were rounded to 16 bits and nothing else": (rounded, everyone),
    }
    for text, (combine, ranks) in known.items():
        expected = weights_after(setting, combine, ranks)
        if expected.shape == weights.shape and np.allclose(weights, expected, rtol=1e-3, atol=1e-4):
            return text
    away = percent(distance_from_single_process(weights, setting))
    return f"its weights are off by {away} of the way they go"
