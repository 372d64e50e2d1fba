import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from filelock import FileLock
from watching import wait_for

from hvdcourse.data import download
from hvdcourse.data.download import DataUnavailable, PublishedFile, data_folders, fetch

CONTENT = bytes(range(256)) * 4000
FILE = PublishedFile(
    "letters", "http://letters.invalid/letters.npz", hashlib.sha256(CONTENT).hexdigest()
)
FETCH = f"""
from hvdcourse.data.download import PublishedFile, fetch
print(fetch({FILE!r}))
"""


class Server:
    """A data host that behaves as a test tells it to, and counts what it was asked for."""

    def __init__(self):
        self.behave = whole
        self.paths = []
        self.go_on = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.paths.append(self.path)
                outer.behave(self, outer)

            def log_message(self, *arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}).start()

    def close(self):
        self.go_on.set()
        self.http.shutdown()
        self.http.server_close()


def start(handler, **headers):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(CONTENT)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


def whole(handler, server):
    start(handler)
    handler.wfile.write(CONTENT)


def called_compressed(handler, server):
    start(handler, Content_Encoding="gzip")
    handler.wfile.write(CONTENT)


def truncated(handler, server):
    start(handler)
    handler.wfile.write(CONTENT[:1000])


def another_file(handler, server):
    start(handler)
    handler.wfile.write(CONTENT[::-1])


def missing(handler, server):
    handler.send_error(404)


def silent(handler, server):
    server.go_on.wait(20)


def stalling(handler, server):
    start(handler)
    handler.wfile.write(CONTENT[:1000])
    server.go_on.wait(20)


def no_http(handler, server):
    handler.wfile.write(b"who are you?\r\n\r\n")


def slowly_whole(handler, server):
    start(handler)
    handler.wfile.write(CONTENT[:1000])
    time.sleep(1.5)
    handler.wfile.write(CONTENT[1000:])


@pytest.fixture
def server(monkeypatch):
    server = Server()
    monkeypatch.setenv("HVDCOURSE_MIRROR", server.address)
    yield server
    server.close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    monkeypatch.setenv("HVDCOURSE_DATA", str(folder))
    return folder / "letters"


@pytest.fixture
def no_network(monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HVDCOURSE_MIRROR", f"http://127.0.0.1:{unused.getsockname()[1]}")


def visible(folder):
    """What is in the folder beside the lock."""
    return sorted(path.name for path in folder.glob("*") if path.name != ".lock")


@pytest.mark.parametrize("behave", [whole, called_compressed])
def test_a_file_is_fetched_once(server, folder, behave, capsys):
    server.behave = behave
    path = fetch(FILE)
    assert path == folder / "letters.npz"
    assert path.read_bytes() == CONTENT
    assert fetch(FILE) == path
    assert server.paths == ["/letters/letters.npz"]
    assert visible(folder) == ["letters.npz"]
    assert capsys.readouterr().err == f"fetching letters.npz from {server.address}/{FILE.place}\n"


def test_others_may_read_what_was_fetched(server, folder):
    assert fetch(FILE).stat().st_mode & 0o777 == 0o644


FAILURES = [
    (truncated, "IncompleteRead(1000 bytes read"),
    (another_file, "does not match the known hash"),
    (missing, "404 Client Error: Not Found"),
    (silent, "the server was silent for 0.5 s"),
    (stalling, "the server was silent for 0.5 s"),
    (no_http, "who are you?"),
]


@pytest.mark.parametrize(("behave", "reason"), FAILURES)
def test_a_failed_fetch_says_why_and_leaves_nothing(server, folder, behave, reason, monkeypatch):
    monkeypatch.setattr(download, "SILENT_SECONDS", 0.5)
    server.behave = behave
    with pytest.raises(DataUnavailable) as raised:
        fetch(FILE)
    assert_it_tells_what_to_do(str(raised.value), reason, folder)
    assert f"{server.address}/letters/letters.npz" in str(raised.value)
    assert visible(folder) == []
    server.behave = whole
    assert fetch(FILE).read_bytes() == CONTENT


def assert_it_tells_what_to_do(message, reason, folder):
    assert reason in message
    assert "letters/letters.npz cannot be used" in message
    assert str(folder / "letters.npz") in message
    assert FILE.sha256 in message
    assert "--data digits" in message


def test_without_a_network(no_network, folder):
    with pytest.raises(DataUnavailable) as raised:
        fetch(FILE)
    assert_it_tells_what_to_do(str(raised.value), "Connection refused", folder)


def test_a_host_that_does_not_exist(folder, monkeypatch):
    monkeypatch.delenv("HVDCOURSE_MIRROR", raising=False)
    with pytest.raises(DataUnavailable) as raised:
        fetch(FILE)
    assert_it_tells_what_to_do(str(raised.value), "there is no network", folder)


def test_a_mirror_that_is_no_address(folder, monkeypatch):
    monkeypatch.setenv("HVDCOURSE_MIRROR", "somewhere")
    with pytest.raises(DataUnavailable, match="Invalid URL 'somewhere/letters"):
        fetch(FILE)


def test_a_file_put_there_by_hand_is_used(no_network, folder):
    folder.mkdir(parents=True)
    (folder / "letters.npz").write_bytes(CONTENT)
    assert fetch(FILE) == folder / "letters.npz"
    assert visible(folder) == ["letters.npz"]


def test_a_wrong_file_put_there_by_hand_is_refused_and_kept(server, folder):
    folder.mkdir(parents=True)
    (folder / "letters.npz").write_bytes(CONTENT[:-1])
    with pytest.raises(DataUnavailable, match="delete it to have it fetched again") as raised:
        fetch(FILE)
    assert_it_tells_what_to_do(str(raised.value), "are not the published file", folder)
    assert visible(folder) == ["letters.npz"]
    assert server.paths == []


def processes(count):
    return [
        subprocess.Popen(
            [sys.executable, "-c", FETCH], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(count)
    ]


def test_processes_that_start_together_fetch_once(server, folder):
    server.behave = slowly_whole
    ranks = processes(3)
    outputs = [rank.communicate(timeout=60) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0], outputs
    assert {output.strip() for output, _ in outputs} == {str(folder / "letters.npz")}
    # One line, and none of pooch's own.
    fetching = f"fetching letters.npz from {server.address}/{FILE.place}\n"
    assert sorted(errors for _, errors in outputs) == ["", "", fetching]
    assert server.paths == ["/letters/letters.npz"]


def test_a_killed_fetch_leaves_no_file_and_the_next_one_succeeds(server, folder):
    server.behave = stalling
    [rank] = processes(1)
    assert wait_for(lambda: server.paths and visible(folder))
    rank.send_signal(signal.SIGKILL)
    rank.communicate(timeout=20)
    [leftover] = visible(folder)
    assert leftover != "letters.npz"
    server.behave = whole
    assert fetch(FILE).read_bytes() == CONTENT
    assert visible(folder) == ["letters.npz"]


def test_waiting_is_said_and_has_an_end(server, folder, monkeypatch, capsys):
    monkeypatch.setattr(download, "NEWS_SECONDS", 0.2)
    monkeypatch.setattr(download, "WAIT_SECONDS", 0.7)
    folder.mkdir(parents=True)
    with FileLock(folder / ".lock"), pytest.raises(DataUnavailable) as raised:
        fetch(FILE)
    assert_it_tells_what_to_do(str(raised.value), "another process has held", folder)
    waiting = f"waiting for another process that writes to {folder}\n"
    assert capsys.readouterr().err.startswith(2 * waiting)
    assert server.paths == []


def test_progress_is_said(server, folder, monkeypatch, capsys):
    monkeypatch.setattr(download, "NEWS_SECONDS", 0.0)
    fetch(FILE)
    assert "fetching letters.npz: 1.0 of 1.0 MB" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made(server, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HVDCOURSE_DATA", str(tmp_path / "file" / "data"))
    with pytest.raises(DataUnavailable, match="set HVDCOURSE_DATA to a folder that can be"):
        fetch(FILE)
    assert server.paths == []


@pytest.fixture
def read_only(folder):
    """Run the fetch while nothing can be written to the data folder."""

    def fetch_without_writing():
        prefix = []
        if os.geteuid() == 0:
            if shutil.which("setpriv") is None:
                pytest.skip("root may write anywhere, and there is no setpriv to forbid it")
            prefix = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
        folder.chmod(0o555)
        return subprocess.run(
            [*prefix, sys.executable, "-c", FETCH], capture_output=True, text=True, timeout=60
        )

    folder.mkdir(parents=True)
    yield fetch_without_writing
    folder.chmod(0o755)


def test_a_read_only_folder_without_the_file(server, read_only):
    ended = read_only()
    assert ended.returncode == 1
    assert "cannot be written to ([Errno 13] Permission denied" in ended.stderr
    assert server.paths == []


def test_a_read_only_folder_with_the_file(no_network, folder, read_only):
    (folder / "letters.npz").write_bytes(CONTENT)
    ended = read_only()
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == str(folder / "letters.npz")


def test_data_lies_in_the_project(tmp_path, monkeypatch):
    monkeypatch.delenv("HVDCOURSE_DATA", raising=False)
    monkeypatch.setattr(download, "PROJECT", tmp_path)
    assert data_folders() == [tmp_path / "data"]


def test_data_of_a_read_only_project_lies_in_the_users_cache(server, tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / "data" / "letters").mkdir(parents=True)
    monkeypatch.delenv("HVDCOURSE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "PROJECT", project)
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: project not in Path(path).parents and access(path, mode)
    )
    assert data_folders() == [project / "data", tmp_path / "cache" / "hvdcourse"]
    assert fetch(FILE) == tmp_path / "cache" / "hvdcourse" / "letters" / "letters.npz"
    # What an instructor has put into the project comes first.
    (project / "data" / "letters" / "letters.npz").write_bytes(CONTENT)
    assert fetch(FILE) == project / "data" / "letters" / "letters.npz"
