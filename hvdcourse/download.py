"""Published files, fetched once per machine however many ranks ask for them at the same time."""

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from socket import gaierror
from typing import BinaryIO
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from filelock import FileLock, Timeout

FOLDER_VARIABLE = "HVDCOURSE_DATA"
MIRROR_VARIABLE = "HVDCOURSE_MIRROR"

# Without a sign of life for this long, the server counts as dead.
READ_SECONDS = 20.0
# For waiting and fetching together: 180 MB at 1 Mbit/s take 24 minutes.
TOTAL_SECONDS = 1800.0
# How often a process that fetches or waits says so. A run that says nothing counts as stuck.
NEWS_SECONDS = 10.0
_BLOCK = 1 << 20
_PROJECT = Path(__file__).resolve().parent.parent


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
    folder = _PROJECT / "data"
    if os.access(folder if folder.exists() else _PROJECT, os.W_OK):
        return [folder]
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return [folder, Path(cache) / "hvdcourse"]


def fetch(
    file: PublishedFile,
    read_seconds: float = READ_SECONDS,
    total_seconds: float = TOTAL_SECONDS,
) -> Path:
    """Return the path of a published file whose checksum is right; fetch it if it is not here.

    One process at a time fetches a file, under another name, and gives it its own name once its
    checksum is right: so a file under its own name is whole. The others wait, and then find it.

    Args:
        file: what to fetch.
        read_seconds: how long the server may be silent, when connecting and while sending.
        total_seconds: how long waiting for other processes and fetching may take together.

    Raises:
        DataUnavailable: no network, no such file, a wrong checksum, no folder to write to, or a
            time limit was reached. Nothing incomplete is left under the file's name.
    """
    folders = data_folders()
    paths = [folder / file.place for folder in folders]
    path = next((path for path in paths if path.exists()), paths[-1])
    deadline = time.monotonic() + total_seconds
    try:
        if not path.exists():
            make_folder(path.parent)
            with only_process(path, deadline):
                # Whoever held the lock before may have fetched it.
                if not path.exists():
                    download(file, path, read_seconds, deadline)
                    return path
        verify(path, file)
    except (OSError, HTTPException, ValueError) as error:
        raise DataUnavailable(explanation(file, path, reason_of(error, read_seconds))) from None
    return path


def make_folder(folder: Path) -> None:
    """Make a folder and see that it can be written to. Raises OSError, with advice."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError("it is read-only")
    except OSError as error:
        raise OSError(
            f"{folder} cannot be written to ({error}); "
            f"set {FOLDER_VARIABLE} to a folder that can be"
        ) from error


@contextmanager
def only_process(path: Path, deadline: float) -> Iterator[None]:
    """Hold the lock of this file; say so while waiting for it. Raises OSError at the deadline.

    The system takes the lock back from a process that is killed.
    """
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    start = time.monotonic()
    while not lock.is_locked:
        left = deadline - time.monotonic()
        try:
            lock.acquire(timeout=max(0.0, min(NEWS_SECONDS, left)))
        except Timeout:
            waited = time.monotonic() - start
            if time.monotonic() >= deadline:
                raise OSError(
                    f"another process has held {lock.lock_file} for {waited:.0f} s"
                ) from None
            say(f"waiting for another process to fetch {path.name}, {waited:.0f} s so far")
    try:
        yield
    finally:
        lock.release()


def download(file: PublishedFile, path: Path, read_seconds: float, deadline: float) -> None:
    """Fetch a file under a temporary name beside ``path``, check it, then rename it to ``path``."""
    part = path.with_name(f".{path.name}.part")
    request = Request(file.address, headers={"User-Agent": "hvdcourse"})
    try:
        with urlopen(request, timeout=read_seconds) as response, part.open("wb") as target:
            copy(response, target, path.name, deadline)
        verify(part, file)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def copy(response: HTTPResponse, target: BinaryIO, name: str, deadline: float) -> None:
    """Copy what the server sends; say how far it is. Raises OSError if it ends early or late."""
    length = response.headers.get("Content-Length")
    size = f" of {int(length) / 1e6:.1f}" if length else ""
    say(f"fetching {name} from {response.url}")
    received, next_news = 0, time.monotonic() + NEWS_SECONDS
    # read1 returns what has arrived: read would wait for a whole block from a server that trickles.
    while block := response.read1(_BLOCK):
        target.write(block)
        received += len(block)
        now = time.monotonic()
        if now >= deadline:
            raise OSError(f"time is up after {received / 1e6:.1f}{size} MB")
        if now >= next_news:
            say(f"fetching {name}: {received / 1e6:.1f}{size} MB")
            next_news = now + NEWS_SECONDS
    if length and received != int(length):
        raise OSError(f"the connection ended after {received} of {length} bytes")


def verify(path: Path, file: PublishedFile) -> None:
    """Raise OSError unless the file has the published checksum."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    if digest.hexdigest() != file.sha256:
        raise OSError(
            f"what is here is not the published file: {path.stat().st_size} bytes with SHA-256 "
            f"{digest.hexdigest()}"
        )


def reason_of(error: Exception, read_seconds: float) -> str:
    """Return in words why a file could not be had."""
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(error, HTTPError):
        return f"the server answered {error.code} {error.reason}"
    if isinstance(cause, gaierror):
        return f"the server's name has no address here, so there is no network ({cause})"
    if isinstance(cause, TimeoutError):
        return f"the server was silent for {read_seconds:g} s"
    return str(cause) or type(cause).__name__


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
