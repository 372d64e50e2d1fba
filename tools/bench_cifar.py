"""Compares ways to train a small ResNet on CIFAR-10 with two ranks, in one run: ``make bench``.

Every form runs in turn, several times over, so that a slow moment of the machine hits all of them
alike. Ratios are taken within a turn, and the table says how many cores other programs took. The
forms themselves are the scripts in ``tools/bench/``.
"""

import argparse
import os
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from hvdcourse import run
from hvdcourse.data.download import data_folders
from hvdcourse.data.published import PUBLISHED
from hvdcourse.data.sets import load
from hvdcourse.machine.ports import free_ports

FORMS = Path(__file__).parent / "bench"
# What our launcher sets otherwise, and Horovod's own does not.
NAIVE_CORES = {"HVDCOURSE_SPLIT_CORES": "0"}
# How often, in milliseconds, Horovod looks for gradients. By medians a step on two cores was 3 to
# 4 % longer with its own choice of 1, and with 0.1; rounds differ by as much. `--more` compares.
FAST_CYCLES = {"HOROVOD_CYCLE_TIME": "0.5"}
# Its pipeline has TensorFlow tell glibc to give back freed memory at once, which costs 6 % of the
# throughput: see tools/horovod_on_tensorflow/README.md.
KEPT_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**28)}
# Where other programs took more than this of the two cores, a run is no measure of its form.
DISTURBED_CORES = 0.2
BFLOAT16_UNITS = ("avx512_bf16", "amx_bf16")


@dataclass(frozen=True)
class Variant:
    """A form of the training, and the ranks and cores that it gets."""

    script: str
    np: int = 2
    cores: int = 2
    backend: str = "gloo"
    environment: dict[str, str] = field(default_factory=dict)
    options: dict[str, bool] = field(default_factory=dict)


ONE_CORE = "fast, 1 rank on 1 core"
ONE_PROCESS = "fast, 1 rank on 2 cores"
FAST = "fast, 2 ranks"
ALONE = "fast, 2 ranks that do not talk"
BFLOAT16 = "fast, 2 ranks, bfloat16"
NAIVE_ONE = "naive, 1 rank on 2 cores"
NAIVE = "naive, 2 ranks, both on 2 cores"
MULTIWORKER = "MultiWorkerMirroredStrategy, 2"
VARIANTS = {
    ONE_CORE: Variant("fast.py", np=1, cores=1),
    ONE_PROCESS: Variant("fast.py", np=1),
    FAST: Variant("fast.py", environment=FAST_CYCLES),
    ALONE: Variant("fast.py", options={"no_allreduce": True}),
    NAIVE_ONE: Variant("naive.py", np=1),
    NAIVE: Variant("naive.py", environment=NAIVE_CORES),
    MULTIWORKER: Variant("multiworker.py", environment=KEPT_MEMORY),
    BFLOAT16: Variant("fast.py", environment=FAST_CYCLES, options={"bfloat16": True}),
}
# What was tried and is worse; `--more` measures it again.
MORE = {
    "fast, 2 ranks over MPI": Variant("fast.py", backend="mpi", environment=FAST_CYCLES),
    "fast, 2 ranks, cycles of 1 ms": Variant("fast.py"),
    "fast, 2 ranks, cycles of 5 ms": Variant("fast.py", environment={"HOROVOD_CYCLE_TIME": "5"}),
    "naive, 2 ranks on a core each": Variant("naive.py"),
}


@dataclass(frozen=True)
class Aim:
    """A ratio to reach: of ``form`` to ``times`` times ``base``."""

    text: str
    form: str
    base: str
    least: float
    times: int = 1


AIMS = (
    Aim("efficiency: 2 ranks over twice 1 rank on 1 core", FAST, ONE_CORE, 0.95, times=2),
    Aim("over the naive form", FAST, NAIVE, 1.5),
    Aim("bfloat16 over the naive form", BFLOAT16, NAIVE, 2.0),
    Aim("over one process that owns both cores", FAST, ONE_PROCESS, 1.0),
    Aim("over MultiWorkerMirroredStrategy", FAST, MULTIWORKER, 1.0),
)


@dataclass(frozen=True)
class Measure:
    """What one run came to: throughput, processor time, and what other programs took of it."""

    images_per_second: float
    core_milliseconds: float
    cores_of_others: float


def measure(variant, **options):
    """Run a variant once and take its fastest epoch, after the first, which builds the graph."""
    result = run(
        FORMS / variant.script,
        variant.np,
        backend=variant.backend,
        cores=variant.cores,
        environment=variant.environment,
        quiet=True,
        ports=",".join(map(str, free_ports(variant.np))),
        **variant.options,
        **options,
    )
    # Other programs can only slow an epoch down: the fastest is the least disturbed.
    timed = [row for row in result.ranks[0].metrics if row["epoch"] > 1]
    best = max(timed, key=lambda row: row["images_per_second"])
    images = best["seconds"] * best["images_per_second"]
    same = [row for rank in result.ranks for row in rank.metrics if row["epoch"] == best["epoch"]]
    ours = sum(row["core_seconds"] for row in same)
    others = (best["machine_core_seconds"] - ours) / best["seconds"]
    return Measure(best["images_per_second"], 1000 * ours / images, max(0.0, others))


def write_images(data, count, path):
    """Write the images to train on, and return in words what they are."""
    if data is None and is_here("cifar10"):
        data = "cifar10"
    random = np.random.default_rng(0)
    if data is None:
        images = random.integers(0, 256, (count, 32, 32, 3), np.uint8)
        np.savez(path, images=images, labels=random.integers(0, 10, count))
        return f"{count:,} RANDOM images of CIFAR-10's shape (throughput is the same)"
    images = load(data, dtype="uint8")
    # A folder's images come ordered by class.
    chosen = random.permutation(len(images.train_images))[:count]
    np.savez(path, images=images.train_images[chosen], labels=images.train_labels[chosen])
    return f"{len(chosen):,} images of {data}"


def is_here(name):
    """Whether the files of a published data set were fetched before."""
    files = PUBLISHED[name].files
    return all(any((folder / file.place).exists() for folder in data_folders()) for file in files)


def has_bfloat16():
    """Whether the processor computes in bfloat16; others imitate it, ten and more times slower."""
    words = Path("/proc/cpuinfo").read_text().split()
    return any(unit in words for unit in BFLOAT16_UNITS)


def spread(values, digits):
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def throughput_table(measures, title):
    table = Table("median (min to max)", "images/s", "core ms/image", "others' cores")
    table.title = title
    for name, turns in measures.items():
        table.add_row(
            name,
            spread([turn.images_per_second for turn in turns], 0),
            spread([turn.core_milliseconds for turn in turns], 2),
            f"{cores_of_others(turns):.1f}",
        )
    return table


def ratios(measures, form, base, times=1):
    """Return how many times faster a form was than ``times`` times another, turn by turn."""
    pairs = zip(measures.get(form, ()), measures.get(base, ()), strict=False)
    return [turn.images_per_second / (times * other.images_per_second) for turn, other in pairs]


def core_time_ratios(measures):
    """Return which part of two ranks' processor time one rank needs for the same, turn by turn."""
    pairs = zip(measures.get(ONE_CORE, ()), measures.get(FAST, ()), strict=False)
    return [turn.core_milliseconds / two.core_milliseconds for turn, two in pairs]


def cores_of_others(turns):
    return statistics.median(turn.cores_of_others for turn in turns)


def verdict(measures, aim, turns):
    """Return whether the aim was reached, or why nothing can be said."""
    if not turns:
        return ""
    taken = max(cores_of_others(measures[name]) for name in (aim.form, aim.base))
    if taken > DISTURBED_CORES:
        return f"unclear: others took {taken:.1f} cores"
    return "reached" if statistics.median(turns) >= aim.least else "not reached"


def aims_table(measures):
    table = Table("ratio, median (min to max)", "measured", "aim", "")
    for aim in AIMS:
        turns = ratios(measures, aim.form, aim.base, aim.times)
        table.add_row(
            aim.text,
            spread(turns, 2) if turns else "not measured",
            f"{aim.least:g}",
            verdict(measures, aim, turns),
        )
    explanations = {
        "efficiency by core time, without all waiting": core_time_ratios(measures),
        "over ranks that do not talk": ratios(measures, FAST, ALONE),
    }
    for text, turns in explanations.items():
        table.add_row(text, spread(turns, 2) if turns else "not measured", "", "")
    return table


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="a data set, or a folder of images of 32x32 pixels")
    parser.add_argument("--images", type=int, default=2048, help="how many images an epoch has")
    parser.add_argument("--epochs", type=int, default=4, help="of a run; the first does not count")
    parser.add_argument("--batch-size", type=int, default=256, help="images a step, on all ranks")
    parser.add_argument("--repeats", type=int, default=5, help="how often each form runs")
    parser.add_argument("--more", action="store_true", help="also measure what is known as worse")
    parser.add_argument("--bfloat16", action="store_true", help="also where the processor has none")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("this compares one core with two; here is only one")
    variants = VARIANTS | (MORE if arguments.more else {})
    if not (has_bfloat16() or arguments.bfloat16):
        del variants[BFLOAT16]
    console = Console(width=100)
    measures = {name: [] for name in variants}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "images.npz"
        title = write_images(arguments.data, arguments.images, file)
        options = {
            "images": file,
            "epochs": arguments.epochs,
            "batch_size": arguments.batch_size,
        }
        turns = [name for _ in range(arguments.repeats) for name in variants]
        for name in tqdm(turns, file=sys.stderr):
            measures[name].append(measure(variants[name], **options))
    console.print(throughput_table(measures, f"{title}, batch {arguments.batch_size} in all"))
    console.print(aims_table(measures))
    if BFLOAT16 not in variants:
        units = " nor ".join(BFLOAT16_UNITS)
        console.print(f"bfloat16: this processor has neither {units}, so it would only be slower.")


if __name__ == "__main__":
    main()
