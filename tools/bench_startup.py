"""Measures what a launch of two ranks costs, in one run: ``make bench-startup``.

Every way of starting is timed in turn, several times over, so that a slow moment of the machine
hits all of them alike.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from hvdcourse.launch.run import run_quickly
from hvdcourse.machine.environment import tool

NP = 2
SCRIPTS = {
    "an empty script": "",
    "hvd.init()": "import hvdcourse\nimport horovod.tensorflow as hvd\n\nhvd.init()\n",
}
MPIRUN = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", str(NP)]


def starts(script):
    """Return the ways to start a script, as functions, by their name."""

    def command(*words):
        return lambda: subprocess.run(words, check=True, capture_output=True, timeout=120)

    python = (sys.executable, str(script))
    return {
        "mpirun": command(tool("mpirun"), *MPIRUN, *python),
        "horovodrun --mpi": command(tool("horovodrun"), "-np", str(NP), "--mpi", *python),
        "horovodrun --gloo": command(tool("horovodrun"), "-np", str(NP), "--gloo", *python),
        "quick start, mpi": lambda: run_quickly(script, np=NP, backend="mpi"),
        "quick start, gloo": lambda: run_quickly(script, np=NP, backend="gloo"),
    }


def measure(repeats, folder):
    """Return seconds, ``[script][way]``, as lists with one entry a repeat."""
    seconds = {}
    for label, text in SCRIPTS.items():
        script = Path(folder) / "script.py"
        script.write_text(text)
        ways = starts(script)
        seconds[label] = {way: [] for way in ways}
        for _ in tqdm(range(repeats), desc=label, file=sys.stderr):
            for way, start in ways.items():
                began = time.perf_counter()
                start()
                seconds[label][way].append(time.perf_counter() - began)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with TemporaryDirectory() as folder:
        seconds = measure(repeats, folder)
    table = Table("seconds, median (min to max)", *SCRIPTS)
    for way in next(iter(seconds.values())):
        columns = (seconds[label][way] for label in SCRIPTS)
        cells = (f"{statistics.median(t):.2f} ({min(t):.2f} to {max(t):.2f})" for t in columns)
        table.add_row(way, *cells)
    Console(width=90).print(table)


if __name__ == "__main__":
    main()
