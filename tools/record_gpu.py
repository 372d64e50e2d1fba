"""Records what a GPU does, for lessons 2, 3 and 5. It takes six to eight minutes.

    python tools/record_gpu.py FOLDER notebooks/recorded/gpu.json

FOLDER has CIFAR-10 as image files: ``train/<class>/*.jpg`` and ``test/<class>/*.jpg``. The scripts
that measure are in ``tools/gpu/``, and those of ``tools/bench/`` train in their forms for one rank.
"""

import argparse
import json
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import tensorflow as tf

from hvdcourse.data.image_folder import find_images, read_images
from hvdcourse.launch.run import RunFailed, run_quickly
from hvdcourse.machine.gpus import ask_nvidia_smi
from hvdcourse.timeline.events import read_events

TOOLS = Path(__file__).parent
ONE_GPU = {"CUDA_VISIBLE_DEVICES": "0"}
FORMS = {
    "naive": ("naive.py", {}),
    "fast": ("fast.py", {}),
    "fast, bfloat16": ("fast.py", {"bfloat16": True}),
}


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="CIFAR-10 as image files")
    parser.add_argument("record", type=Path, help="the JSON file to write")
    parser.add_argument("--quick", action="store_true", help="only show that all parts run")
    return parser.parse_args()


def machine():
    """Return what the measurements were made with."""
    build = tf.sysconfig.get_build_info()
    question = ("--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
    packages = ("tensorflow", "horovod", "nvidia-cudnn-cu12", "nvidia-nccl-cu12")
    return {
        "gpu, driver, memory": ask_nvidia_smi("--id=0", *question).strip(),
        "cuda": build.get("cuda_version"),
        "date": date.today().isoformat(),
        "command": "python tools/record_gpu.py FOLDER RECORD",
        **{name: version(name) for name in packages},
    }


def evidence(script, np_=1, environment=None, **options):
    """Run a script of ``tools/gpu`` with the first GPU for all ranks; return what rank 0 found."""
    began = time.perf_counter()
    environment = {**ONE_GPU, **(environment or {})}
    result = run_quickly(
        TOOLS / "gpu" / script, np_, environment=environment, timeout=240, **options
    )
    print(f"{script} {options}: {time.perf_counter() - began:.0f} s", flush=True)
    return {entry["report"]: entry["value"] for entry in result.ranks[0].evidence}


def ranks_that_share(quick):
    """Return seconds of steps with one rank and with two, in turns, and what NCCL says to two."""
    fewer = {"turns": 2, "batch_size": 32} if quick else {}
    cases = [(1, "none"), (1, "gpu"), (2, "processor")]
    found = {f"{np_}, {how}": [] for np_, how in cases}
    for _ in range(1 if quick else 2):
        for np_, how in cases:
            found[f"{np_}, {how}"] += evidence("ranks.py", np_, exchange=how, **fewer)["seconds"]
    try:
        evidence("ranks.py", 2, {"NCCL_DEBUG": "WARN"}, exchange="gpu", **fewer)
        found["2, gpu"] = "it ran"
    except RunFailed as failed:
        lines = [line for rank in failed.result.ranks for line in (*rank.output, *rank.errors)]
        found["2, gpu"] = next((line for line in lines if "ncclCommInitRank" in line), str(failed))
    with tempfile.TemporaryDirectory() as folder:
        timeline = Path(folder, "timeline.json")
        evidence("ranks.py", 1, {"HOROVOD_TIMELINE": str(timeline)}, exchange="gpu", **fewer)
        began = [event for event in read_events(timeline) if event["ph"] == "B"]
        found["operations"] = sorted({event["name"] for event in began})
    return found


def forms_of_training(folder, quick):
    """Return images a second of one rank in the benchmark's forms, in turns, on CIFAR-10."""
    found = find_images(folder)
    count = 512 if quick else 16_384
    chosen = np.random.default_rng(0).permutation(len(found.train_paths))[:count]
    images = read_images([found.train_paths[row] for row in chosen])
    size = {"epochs": 2, "batch_size": 256} if quick else {"epochs": 6, "batch_size": 1024}
    speeds = {name: [] for name in FORMS}
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "images.npz")
        np.savez(file, images=images, labels=found.train_labels[chosen])
        for _ in range(1 if quick else 3):
            for name, (script, options) in FORMS.items():
                settings = {"images": file, **size, **options}
                path = TOOLS / "bench" / script
                result = run_quickly(path, 1, environment=ONE_GPU, timeout=120, **settings)
                later = [row for row in result.ranks[0].metrics if row["epoch"] > 1]
                speeds[name].append(max(row["images_per_second"] for row in later))
    return speeds


def main():
    arguments = read_arguments()
    if not tf.config.list_physical_devices("GPU"):
        sys.exit("error: TensorFlow finds no GPU: this records what one does")
    folder, quick = arguments.folder.resolve(), arguments.quick
    small = {"largest": 5, "images": 2, "turns": 2} if quick else {}
    short = {"seconds": 1} if quick else {}
    parts = {
        "machine": machine,
        "steps": lambda: evidence("precision.py", **small),
        "feeding": lambda: evidence("feeding.py", data=folder, **short),
        "ranks": lambda: ranks_that_share(quick),
        "forms": lambda: forms_of_training(folder, quick),
    }
    found, failures = {}, []
    for name, part in parts.items():
        began = time.perf_counter()
        try:
            found[name] = part()
        except RunFailed as failed:
            failures.append(f"{name}: {failed}")
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
        arguments.record.write_text(json.dumps(found) + "\n")
    if failures:
        sys.exit("error: not recorded: " + "\n".join(failures))


if __name__ == "__main__":
    main()
