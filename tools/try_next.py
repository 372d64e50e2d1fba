"""Builds and checks the course against the newest TensorFlow and tf-keras, and says what breaks.

``python tools/try_next.py`` is ``make try-next``. It works on a clone of what is committed, in
``build/try-next/``: the project's own ``.venv`` and ``uv.lock`` stay. With ``--prerelease`` release
candidates count, too.
"""

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hvdcourse.checks.manifest import EXERCISES
from hvdcourse.paths import PROJECT

FOLDER = PROJECT / "build" / "try-next"
# The shim that stands in the place of Keras 3 keeps its own version.
NEWEST = ("tensorflow-cpu", "tensorflow", "tf-keras", "tensorboard")
PINS = re.compile(r'"((?:tensorflow(?:-cpu|\[and-cuda\])?|tf-keras|tensorboard))==[\d.]+')
SECONDS = 3600


def unpin(folder: Path) -> None:
    """Let the project in a folder take newer versions of the packages in ``NEWEST``."""
    for file in ("pyproject.toml", "tools/horovod_on_tensorflow/keras_2/pyproject.toml"):
        path = folder / file
        text = PINS.sub(lambda pin: pin[0].replace("==", ">="), path.read_text())
        # A release candidate asks for Keras 3 by this name.
        text = text.replace(
            "override-dependencies = [",
            "override-dependencies = [\"keras-nightly ; sys_platform == 'none'\", ",
        )
        # What is said of tf-keras' requirements holds for each of its versions.
        path.write_text(re.sub(r'(name = "tf-keras"\n)version = .*\n', r"\1", text))


def locked_versions(folder: Path) -> dict[str, str]:
    """Return the version of each package in ``NEWEST`` by the lock file in a folder."""
    lock = (folder / "uv.lock").read_text()
    locked = re.findall(r'^name = "(.+)"\nversion = "(.+)"$', lock, re.MULTILINE)
    return {name: version for name, version in locked if name in NEWEST}


def build_for(folder: Path, version: str) -> None:
    """Have uv build Horovod anew: it keeps a wheel for each value of this variable."""
    path = folder / "pyproject.toml"
    text = re.sub(r'(BUILT_FOR_TENSORFLOW = )".*"', rf'\1"{version}"', path.read_text())
    path.write_text(text)


def attempt(*command: str) -> tuple[bool, str]:
    """Run a command in the clone; return whether it succeeded, and the last line it printed."""
    environment = {**os.environ, "PATH": f"{FOLDER}/.venv/bin:{os.environ['PATH']}"}
    environment["OPAL_PREFIX"] = f"{FOLDER}/.venv"
    completed = subprocess.run(
        command,
        cwd=FOLDER,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
    )
    with (FOLDER / "try-next.log").open("a") as log:
        log.write(f"$ {' '.join(command)}\n{completed.stdout}\n")
    lines = completed.stdout.strip().splitlines() or [""]
    return completed.returncode == 0, lines[-1].strip()


def main() -> None:
    """Print a table with a row for each thing that was tried; exit 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prerelease", action="store_true", help="take release candidates, too")
    prerelease = ["--prerelease", "allow"] if parser.parse_args().prerelease else []
    shutil.rmtree(FOLDER, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", PROJECT, FOLDER], check=True)
    before = locked_versions(FOLDER)
    unpin(FOLDER)
    uv = shutil.which("uv") or str(PROJECT / ".uv" / "bin" / "uv")
    upgrades = [word for name in NEWEST for word in ("--upgrade-package", name)]
    results = {"lock": attempt(uv, "lock", *upgrades, *prerelease)}
    after = locked_versions(FOLDER)
    build_for(FOLDER, after["tensorflow"])
    tries = {
        "set up": ["tools/setup.sh"],
        "doctor": ["hvdcourse", "doctor"],
        **{e.name: ["hvdcourse", "check", e.name, "--folder", "solutions"] for e in EXERCISES},
    }
    console = Console()
    for name, command in tries.items():
        if results.get("set up", (True,))[0]:
            console.print(f"{name} …")
            results[name] = attempt(*command)

    table = Table("tried", "", "its last line", title="The newest TensorFlow")
    for name in NEWEST:
        table.add_row(name, "newer" if before[name] != after[name] else "same", after[name])
    for name, (well, line) in results.items():
        table.add_row(name, "well" if well else "BREAKS", line)
    console.print(table)
    console.print(f"All that was printed: {FOLDER / 'try-next.log'}")
    raise SystemExit(not all(well for well, _ in results.values()))


if __name__ == "__main__":
    main()
