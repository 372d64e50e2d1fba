"""Published files, fetched once per machine however many ranks ask for them at the same time."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import gaierror
from typing import Any

import pooch
from filelock import FileLock, Timeout

from hvdcourse.paths import PROJECT

FOLDER_VARIABLE = "HVDCOURSE_DATA"
MIRROR_VARIABLE = "HVDCOURSE_MIRROR"

# How long a server may be silent, when connecting and while sending.
SILENT_SECONDS = 20.0
# How long to wait for another process: 180 MB at 1 Mbit/s take 24 minutes.
WAIT_SECONDS = 1800.0
# How often a process that fetches or waits says so. A run that says nothing counts as stuck.
NEWS_SECONDS = 10.0
_CHUNK_BYTES = 1 << 14


class DataUnavailable(OSError):
    """A file is neither here nor to be had; the message says where to put it by hand."""


@dataclass(frozen=True)
class PublishedFile:
    """One file of a data set: its address, its SHA-256 in hex, and its place in the data folder."""

    data_set: str
    url: str
    sha256: str

    @property
    def place(self) -> Path:
        """The path below the data folder, such as ``mnist/mnist.npz``."""
        return Path(self.data_set) / self.url.rsplit("/", 1)[1]

    @property
    def address(self) -> str:
        """The URL to fetch from: the mirror's, where HVDCOURSE_MIRROR names one."""
        mirror = os.environ.get(MIRROR_VARIABLE)
        return f"{mirror.rstrip('/')}/{self.place.as_posix()}" if mirror else self.url


def data_folders() -> list[Path]:
    """Return the folders to look for data in; files are fetched into the last of them.

    That is the folder that HVDCOURSE_DATA names, else ``data/`` in the project. Where the project
    is read-only, ``hvdcourse/`` in the user's cache comes behind it.
    """
    if os.environ.get(FOLDER_VARIABLE):
        return [Path(os.environ[FOLDER_VARIABLE]).expanduser().absolute()]
    folder = PROJECT / "data"
    if os.access(folder if folder.exists() else PROJECT, os.W_OK):
        return [folder]
    return [folder, Path(pooch.os_cache("hvdcourse"))]


def fetch(file: PublishedFile) -> Path:
    """Return the path of a published file whose checksum is right; fetch it if it is not here.

    One process at a time fetches files of a data set. The others wait, and then find them.

    Raises:
        DataUnavailable: no network, no such file, a wrong checksum, no folder to write to, or a
            time limit was reached. Nothing incomplete is left under the file's name.
    """
    paths = [folder / file.place for folder in data_folders()]
    path = next((path for path in paths if path.exists()), paths[-1])
    try:
        if not path.exists():
            with only_process(path.parent / ".lock"):
                # The process that held the lock before may have fetched it.
                if not path.exists():
                    download(file, path)
                    return path
        if pooch.file_hash(path) != file.sha256:
            raise OSError(f"the {path.stat().st_size} bytes here are not the published file")
    except OSError as error:
        raise DataUnavailable(explanation(file, path, str(error))) from None
    return path


def download(file: PublishedFile, path: Path) -> None:
    """Fetch a file, whole and with the right checksum, or not at all. Raises OSError.

    No other process may write to its folder at the same time.
    """
    # What pooch left behind when it was killed.
    for leftover in path.parent.glob("tmp????????"):
        leftover.unlink()
    pooch.get_logger().setLevel("WARNING")
    say(f"fetching {path.name} from {file.address}")
    downloader = pooch.HTTPDownloader(
        Progress(path.name),
        _CHUNK_BYTES,
        timeout=SILENT_SECONDS,
        headers={"User-Agent": "hvdcourse", "Accept-Encoding": "identity"},
        hooks={"response": keep_compressed},
    )
    try:
        pooch.retrieve(file.address, file.sha256, path.name, path.parent, downloader=downloader)
    except (OSError, ValueError) as error:
        raise OSError(reason_of(error)) from None
    # A class may share the folder, and pooch makes files that only their owner may read.
    path.chmod(0o644)


def keep_compressed(response: Any, **options: Any) -> None:
    """Keep a ``.gz`` file as it is, also where the server calls it a compressed answer."""
    response.raw.headers.pop("Content-Encoding", None)


def reason_of(error: BaseException) -> str:
    """Return in words why a file could not be had: the first of a chain of errors."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    if isinstance(error, gaierror):
        return f"the server's name has no address here, so there is no network ({error})"
    if isinstance(error, TimeoutError):
        return f"the server was silent for {SILENT_SECONDS:g} s"
    return str(error).strip() or type(error).__name__


@contextmanager
def only_process(lock_file: Path) -> Iterator[None]:
    """Hold a lock; say so while waiting for it. The system takes it back from a killed process.

    Raises:
        OSError: the lock's folder cannot be made or written to, or the wait took too long.
    """
    news = News()

    def say_and_go_on() -> bool:
        news.say(f"waiting for another process that writes to {lock_file.parent}")
        return False

    try:
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(lock_file).acquire(WAIT_SECONDS, cancel_check=say_and_go_on)
    except Timeout:
        raise OSError(f"another process has held {lock_file} for {WAIT_SECONDS:g} s") from None
    except OSError as error:
        raise OSError(
            f"{lock_file.parent} cannot be written to ({error}); "
            f"set {FOLDER_VARIABLE} to a folder that can be"
        ) from error
    with lock:
        yield


class News:
    """Says what a long task is doing, but only every NEWS_SECONDS."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def say(self, message: str) -> None:
        """Print the line, if it is time to."""
        if time.monotonic() - self.last >= NEWS_SECONDS:
            say(message)
            self.last = time.monotonic()


class Progress:
    """What pooch takes for a progress bar; it sets ``total`` in bytes, 0 where it is unknown."""

    total = 0

    def __init__(self, name: str):
        self.name, self.received, self.news = name, 0, News()

    def update(self, count: int) -> None:
        """Count bytes."""
        self.received += count
        size = f" of {self.total / 1e6:.1f}" if self.total else ""
        self.news.say(f"fetching {self.name}: {self.received / 1e6:.1f}{size} MB")

    def reset(self) -> None:
        """Count from 0; pooch then counts all bytes once more, and is done."""
        self.received = 0

    def close(self) -> None:
        """Do nothing: lines stay."""


def explanation(file: PublishedFile, path: Path, reason: str) -> str:
    """Return the one message about a file that cannot be had: why, and what to do."""
    remedy = (
        "delete it to have it fetched again, or put the right file there"
        if path.exists()
        else "fetch it elsewhere and put it there; it is checked and used"
    )
    return (
        f"{file.place} cannot be used: {reason}\n"
        f"  address  {file.address}\n"
        f"  SHA-256  {file.sha256}\n"
        f"  place    {path}\n"
        f"  by hand  {remedy}\n"
        f"  offline  --data digits needs no network"
    )


def say(message: str) -> None:
    """Print a line on stderr at once."""
    print(message, file=sys.stderr, flush=True)
