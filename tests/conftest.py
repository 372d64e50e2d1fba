"""What the tests share: small scripts, and a watch over processes and folders left behind."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `from watching import …`

from watching import watched


@pytest.fixture(scope="session", autouse=True)
def base_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make pytest choose its own folder before any test changes TMPDIR."""
    return tmp_path_factory.getbasetemp()


@pytest.fixture
def nothing_left() -> Iterator[Path]:
    """Fail the test if it leaves a process or a folder of ours behind."""
    with watched() as temporary:
        yield temporary


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
