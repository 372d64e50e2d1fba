"""How far a training scales: efficiency against the number of GPUs, and what an accuracy costs."""

from dataclasses import replace
from typing import Any

import numpy as np

from hvdcourse.errors import BadInput, positive, whole_number
from hvdcourse.simulate.links import Cluster, Link, read_link
from hvdcourse.simulate.networks import find_network
from hvdcourse.simulate.step import MEBIBYTE, Horovod, Step, simulate

MOST_GPUS = 2**20
# What of a network's rate arrives, and how much slower a GPU computes while it communicates. Both
# explain a published run on 16 GPUs: `chart.calibrate` finds them, and a test compares.
USABLE, SLOWDOWN = 0.845, 1.062


def place(gpus: int, per_host: int, inside: Link, between: Link) -> Cluster:
    """Return the cluster of so many GPUs. Raises BadInput where the last host would not be full."""
    if gpus > per_host and gpus % per_host:
        raise BadInput(
            f"gpus must fill whole hosts of {per_host}: a multiple of it, or fewer; got {gpus}"
        )
    local = min(gpus, per_host)
    return Cluster(gpus // local, local, inside, between)


def efficiency(seconds: float, alone: float, gpus: int, scaling: str = "weak") -> float:
    """Return the share of all GPUs' time that is of use, 1 at best.

    Args:
        seconds: of a step on all GPUs.
        alone: of a step on one GPU.
        gpus: how many.
        scaling: "weak", where each GPU keeps its batch and the global batch grows with their
            number; or "strong", where one global batch is divided among them.
    """
    return alone / seconds / (gpus if scaling == "strong" else 1)


def steps_to_accuracy(batch: Any, critical_batch: float) -> Any:
    """Return the steps that training takes with this global batch, in those with an endless one.

    S / S_min = 1 + B_crit / B (arXiv:1812.06162, equation 2.11).
    """
    return 1 + critical_batch / np.asarray(batch, float)


def powers_of_two(most: int) -> list[int]:
    """Return 1, 2, 4 … and the largest number itself."""
    return [2**power for power in range(most.bit_length()) if 2**power < most] + [most]


def predict_step(
    model: str = "resnet50",
    gpus: Any = 1,
    *,
    link: str = "25gbit",
    inside: str = "pcie",
    gpus_per_host: Any = 4,
    batch: Any = None,
    scaling: str = "weak",
    fp16: bool = False,
    fusion_mb: Any = 128,
    cycle_ms: Any = 1,
    algorithm: str = "ring_or_tree",
    faster: Any = 1,
    delay_ms: Any = 0,
    usable: Any = USABLE,
    slowdown: Any = SLOWDOWN,
) -> Step:
    """Return one step of a published network on a cluster of GPUs.

    Args:
        model: one of ``networks.NETWORKS``.
        gpus: how many GPUs, that is ranks.
        link: between hosts, and ``inside`` of them: as ``links.read_link`` reads it.
        inside: see ``link``.
        gpus_per_host: as it says.
        batch: images per GPU, or with strong scaling of all GPUs together; as published without.
        scaling: "weak" or "strong", see ``efficiency``.
        fp16: gradients travel in 16 bits.
        fusion_mb: the fusion buffer in MiB; 0 for no fusion.
        cycle_ms: Horovod's cycle in milliseconds.
        algorithm: of the allreduce.
        faster: how many times as fast as the published GPU these are.
        delay_ms: what holds a GPU up in each step, in milliseconds: the mean of an exponential
            distribution, from which every GPU draws its own. The step waits for the longest.
        usable: the share of the link's rate between hosts that is of use.
        slowdown: how many times as long computing takes on several GPUs as on one.

    Raises:
        BadInput: a setting is wrong; the message names it.
    """
    network = find_network(model)
    number = whole_number(gpus, "gpus", MOST_GPUS)
    if scaling not in ("weak", "strong"):
        raise BadInput(f"scaling must be weak or strong; got {scaling!r}")
    images = network.batch if batch is None else positive(batch, "batch")
    per_gpu = images / (number if scaling == "strong" else 1)
    slower = positive(slowdown, "slowdown") if number > 1 else 1.0
    forward, layers = network.passes(per_gpu * slower / positive(faster, "faster"))
    delay = 0.0 if delay_ms in (0, "0") else positive(delay_ms, "delay_ms") / 1000
    # Of N exponential delays with the same mean the longest is 1 + 1/2 + … + 1/N times as long.
    forward += delay * float(np.sum(1 / np.arange(1, number + 1)))
    fusion = 0.0 if fusion_mb in (0, "0") else positive(fusion_mb, "fusion_mb") * MEBIBYTE
    horovod = Horovod(fusion, positive(cycle_ms, "cycle_ms") / 1000, fp16=fp16)
    local = whole_number(gpus_per_host, "gpus_per_host", MOST_GPUS)
    between = read_link(link)
    between = replace(between, bandwidth=between.bandwidth * positive(usable, "usable"))
    cluster = place(number, local, read_link(inside), between)
    return simulate(layers, forward, cluster, horovod, algorithm)


def what_if(
    model: str = "resnet50",
    gpus: Any = 512,
    *,
    critical_batch: Any = None,
    batch: Any = None,
    scaling: str = "weak",
    **settings: Any,
) -> dict[str, np.ndarray]:
    """Return what a table or a plot shows, one value for each of 1, 2, 4 … GPUs.

    These are ``gpus``, ``seconds`` a step, the ``exposed`` seconds of it, ``efficiency`` and
    ``images_per_second``. With ``critical_batch``, B_crit in images, also the ``steps`` to the same
    accuracy, in units of S_min, and the ``time`` to the accuracy and its ``cost`` in GPU-hours,
    both in those of one GPU.

    Args:
        model: see ``predict_step``, as for all settings.
        gpus: the largest number.
        critical_batch: where twice the batch no longer halves the steps, from lesson 4.
        batch: see ``predict_step``.
        scaling: see ``predict_step``.
        settings: the others of ``predict_step``.

    Raises:
        BadInput: a setting is wrong; the message names it.
    """
    network = find_network(model)
    images = network.batch if batch is None else positive(batch, "batch")
    local = whole_number(settings.get("gpus_per_host", 4), "gpus_per_host", MOST_GPUS)
    most = whole_number(gpus, "gpus", MOST_GPUS)
    place(most, local, read_link("pcie"), read_link("pcie"))
    counts = [n for n in powers_of_two(most) if n <= local or n % local == 0]
    steps = [predict_step(model, n, batch=images, scaling=scaling, **settings) for n in counts]
    numbers = np.array(counts)
    seconds = np.array([step.seconds for step in steps])
    in_all = images * (numbers if scaling == "weak" else np.ones_like(numbers))
    table = {
        "gpus": numbers,
        "seconds": seconds,
        "exposed": np.array([step.exposed for step in steps]),
        "efficiency": np.array(
            [efficiency(s, seconds[0], n, scaling) for s, n in zip(seconds, counts, strict=True)]
        ),
        "images_per_second": in_all / seconds,
    }
    if critical_batch is not None:
        table["steps"] = steps_to_accuracy(in_all, positive(critical_batch, "critical_batch"))
        time = table["steps"] * seconds
        table["time"] = time / time[0]
        table["cost"] = table["time"] * numbers
    return table
