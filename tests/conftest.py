"""What the tests share: small scripts, and a watch over processes and folders left behind."""

import multiprocessing.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import dedent

import nbval.kernel
import pytest
from kernels import LocalKernelManager
from watching import HVDCOURSE, watched

from hvdcourse.checks.exercises.timeline import RECORDED
from hvdcourse.checks.stages import generate
from hvdcourse.paths import PROJECT

# A port that nbval picks for a kernel could be taken, by ranks of another test, before it starts.
nbval.kernel.KernelManager = LocalKernelManager

# While these wait for limits and pauses, the lessons compute beside them.
MOSTLY_WAIT = ("supervisor", "input_pipeline", "run", "download", "doctor")
# What coverage gives the processes that start: they measure themselves, too.
COVERAGE_VARIABLE = "COVERAGE_PROCESS_CONFIG"
COVERAGE_OF_PROCESSES = pytest.StashKey[str | None]()


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put first what mostly waits; in each part what is measured takes a fork server of its own.

    The cells of a notebook, which nbval runs, share a kernel, and so stay together.
    """

    def place(item: pytest.Item) -> tuple[bool, bool]:
        waits = item.path.stem.removeprefix("test_") in MOSTLY_WAIT
        return not waits, item.get_closest_marker("measured") is not None

    items.sort(key=place)
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    # Measuring makes TensorFlow a third slower.
    config.stash[COVERAGE_OF_PROCESSES] = os.environ.pop(COVERAGE_VARIABLE, None)


@pytest.fixture(scope="session", autouse=True)
def base_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make pytest and multiprocessing choose their folders before any test changes TMPDIR."""
    multiprocessing.util.get_temp_dir()
    return tmp_path_factory.getbasetemp()


@pytest.fixture(scope="session", autouse=True)
def signals_work() -> None:
    """A shell's background job ignores Ctrl-C, nohup SIGHUP; so would all that the tests start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def ranks_where_marked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only tests with the mark ``ranks`` start any: the others are the fast ones."""
    if not request.node.get_closest_marker("ranks"):

        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("a test that starts ranks has the mark pytest.mark.ranks")

        monkeypatch.setattr("hvdcourse.launch.run.start_process", refuse)


@pytest.fixture
def nothing_left() -> Iterator[Path]:
    """Fail the test if it leaves a process or a folder of ours behind."""
    with watched() as temporary:
        yield temporary


@pytest.fixture(autouse=True)
def coverage_of_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the coverage of the processes that a test starts only where it is marked for it."""
    wanted = request.config.stash[COVERAGE_OF_PROCESSES]
    if wanted and request.node.get_closest_marker("measured"):
        monkeypatch.setenv(COVERAGE_VARIABLE, wanted)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mount a disk of so many KiB, in memory, and return its folder."""
    folder = tmp_path / "disk"

    def mounted(kibibytes: int) -> Path:
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", str(folder)]
        if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("mounting a disk is not allowed here")
        return folder

    yield mounted
    if folder.is_mount():
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the progress of this test in a folder of its own."""
    folder = tmp_path / "state"
    monkeypatch.setenv("HVDCOURSE_STATE", str(folder))
    return folder


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """Write a script into the test's folder and return its path."""

    def write(text: str, name: str = "script.py") -> Path:
        path = tmp_path / name
        path.write_text(dedent(text).lstrip("\n"))
        return path

    return write


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy what a learner works with, as it came; commands that this test starts use the copy."""
    copy = tmp_path / "project"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("hvdcourse", "solutions"):
        shutil.copytree(PROJECT / name, copy / name, ignore=ignored)
    # What the check of timeline.py reads.
    (copy / "notebooks" / "recorded").mkdir(parents=True)
    for timeline in RECORDED:
        shutil.copy(timeline, copy / "notebooks" / "recorded")
    (copy / "source_code").mkdir()
    generate(copy / "solutions", copy / "source_code")
    monkeypatch.setenv("PYTHONPATH", str(copy))
    return copy


@pytest.fixture
def hvdcourse(project: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Run the command in the copy of the project: ``hvdcourse("check", "mpi_concepts")``."""

    def command(
        *arguments: str, prefix: Sequence[str] = (), **environment: str
    ) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*prefix, HVDCOURSE, *arguments],
            cwd=project,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=150,
        )

    return command


@pytest.fixture
def in_process(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, state: Path
) -> Callable[..., subprocess.CompletedProcess]:
    """Run the command in this process, on the project itself: 20 times as fast."""
    from hvdcourse.commands.main import main

    def command(*arguments: str) -> subprocess.CompletedProcess:
        monkeypatch.setattr(sys, "argv", ["hvdcourse", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return subprocess.CompletedProcess(arguments, end.value.code, *capsys.readouterr())

    return command
