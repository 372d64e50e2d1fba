"""The trial's server: the course installed once, read-only, and a real JupyterHub on 127.0.0.1."""

import ctypes
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import requests

from hvdcourse.checks.stages import generate
from hvdcourse.machine.ports import free_ports
from hvdcourse.machine.processes import end_all, is_alive
from hvdcourse.paths import PROJECT

COURSE = ("README.md", "hvdcourse", "images", "notebooks", "solutions", "source_code", "tools")
# An option of Linux's prctl: orphans of this process's descendants become its own children.
PR_SET_CHILD_SUBREAPER = 36
START_SECONDS = 60
STOP_SECONDS = 60


@dataclass(frozen=True)
class Server:
    """A hub that runs; ``folder`` holds the course, the learners' homes, the queue and the log."""

    folder: Path
    url: str
    password: str
    hub: subprocess.Popen

    @property
    def course(self) -> Path:
        """Where the course is installed."""
        return self.folder / "course"

    def copy_of(self, name: str) -> Path:
        """Return where a learner's copy of the course is."""
        return self.folder / "homes" / name / "hvdcourse"

    def stop(self) -> list[str]:
        """Stop the hub as an administrator does, and return what is left over: nothing."""
        self.hub.terminate()
        self.hub.wait(STOP_SECONDS)
        deadline = time.monotonic() + STOP_SECONDS
        while processes_below() and time.monotonic() < deadline:
            time.sleep(0.2)
        files = [*(self.folder / "queue").iterdir(), *(self.folder / "tmp").glob("hvdcourse-*")]
        return [" ".join(process.cmdline()) for process in processes_below()] + list(
            map(str, files)
        )


def processes_below() -> list[psutil.Process]:
    """Return all living processes that this one has started, however indirectly."""
    return [child for child in psutil.Process().children(recursive=True) if is_alive(child)]


def read_only_for_root() -> None:
    """Start this program anew where root may write to read-only files, without that right."""
    if os.getuid() == 0 and "TRIAL_WITHOUT_RIGHT" not in os.environ:
        os.environ["TRIAL_WITHOUT_RIGHT"] = "1"
        command = ["setpriv", "--bounding-set=-dac_override", sys.executable, *sys.argv]
        os.execvp(command[0], command)


def install(course: Path) -> None:
    """Put the course into a folder, once, so that nobody can write to it."""
    course.mkdir()
    for name in COURSE:
        source = PROJECT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, course / name)
    # As it came, whatever has been worked on here.
    generate(course / "solutions", course / "source_code")
    (course / ".venv").symlink_to(sys.prefix)
    subprocess.run([sys.executable, "-m", "compileall", "-q", course / "hvdcourse"], check=True)
    subprocess.run(["chmod", "-R", "a-w", course], check=True)


def state_of(course: Path) -> dict[Path, int]:
    """Return when each file of the course was changed."""
    return {path: path.lstat().st_mtime_ns for path in course.rglob("*")}


def wait_for_hub(url: str, hub: subprocess.Popen, log: Path) -> None:
    """Return once the hub answers. Raises RuntimeError with its log where it does not."""
    deadline = time.monotonic() + START_SECONDS
    while hub.poll() is None and time.monotonic() < deadline:
        try:
            requests.get(f"{url}/hub/api", timeout=5).raise_for_status()
            return
        except requests.RequestException:
            time.sleep(0.2)
    raise RuntimeError(f"the hub did not start:\n{log.read_text()}")


@contextmanager
def class_server() -> Iterator[Server]:
    """Install the course, start a hub, and remove everything at the end, whatever happened."""
    # So whatever the hub's servers leave behind is found.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    folder = Path(tempfile.mkdtemp(prefix="class-"))
    try:
        install(folder / "course")
        for name in ("homes", "queue", "tmp"):
            (folder / name).mkdir()
        ports, password = free_ports(3), secrets.token_hex()
        environment = {
            **os.environ,
            "TRIAL_FOLDER": str(folder),
            "TRIAL_PORTS": " ".join(map(str, ports)),
            "TRIAL_PASSWORD": password,
        }
        config = folder / "course" / "tools" / "class_server" / "trial_config.py"
        url = f"http://127.0.0.1:{ports[0]}"
        with (folder / "hub.log").open("w") as log:
            command = ["jupyterhub", "--config", config]
            hub = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        wait_for_hub(url, hub, folder / "hub.log")
        yield Server(folder, url, password, hub)
    finally:
        end_all(processes_below, grace=5)
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)
        shutil.rmtree(folder)
