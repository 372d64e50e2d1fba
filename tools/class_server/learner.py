"""A learner as a JupyterHub sees one: logs in by the form, starts a server, edits, and checks."""

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import requests
import websocket

# For any single answer of a machine that is busy with all the others.
SECONDS = 300


class Learner:
    """Talks to the hub, and to the learner's own server, over HTTP and web sockets alone."""

    def __init__(self, hub: str, name: str):
        self.hub, self.name = hub, name
        self.server = f"{hub}/user/{name}"
        self.session = requests.Session()

    def log_in(self, password: str) -> None:
        """Fill in the hub's form, as a browser does, and ask for a token for all that follows."""
        self.session.get(f"{self.hub}/hub/login", timeout=SECONDS).raise_for_status()
        xsrf = {"_xsrf": self.session.cookies["_xsrf"]}
        form = {"username": self.name, "password": password, **xsrf}
        page = self.session.post(f"{self.hub}/hub/login?next=/hub/home", form, timeout=SECONDS)
        page.raise_for_status()
        xsrf = {"_xsrf": self.session.cookies.get("_xsrf", path="/hub/")}
        address = f"{self.hub}/hub/api/users/{self.name}/tokens"
        answer = self.session.post(address, params=xsrf, json={}, timeout=SECONDS)
        answer.raise_for_status()
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"token {answer.json()['token']}"

    def ask(self, method: str, address: str, **options) -> requests.Response:
        """Return an answer that is no error."""
        answer = self.session.request(method, address, timeout=SECONDS, **options)
        answer.raise_for_status()
        return answer

    def start(self) -> None:
        """Start the server, and wait until it is ready."""
        user = f"{self.hub}/hub/api/users/{self.name}"
        self.ask("POST", f"{user}/server")
        deadline = time.monotonic() + SECONDS
        while not self.ask("GET", user).json()["servers"].get("", {}).get("ready"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the server of {self.name} was not ready in {SECONDS} s")
            time.sleep(0.5)

    def stop(self) -> None:
        """Stop the server, and wait until the hub says that it is gone."""
        user = f"{self.hub}/hub/api/users/{self.name}"
        self.ask("DELETE", f"{user}/server")
        while self.ask("GET", user).json()["servers"]:
            time.sleep(0.2)

    def read(self, path: str) -> str:
        """Return a file of the learner's copy."""
        return self.ask("GET", f"{self.server}/api/contents/{path}").json()["content"]

    def save(self, path: str, text: str) -> None:
        """Save a file, as JupyterLab's editor does."""
        model = {"type": "file", "format": "text", "content": text}
        self.ask("PUT", f"{self.server}/api/contents/{path}", json=model)

    @contextmanager
    def connected(self, path: str) -> Iterator[websocket.WebSocket]:
        """Open a web socket of the learner's server."""
        address = f"{self.server}/{path}".replace("http", "ws", 1)
        authorization = self.session.headers["Authorization"]
        socket = websocket.create_connection(
            address, timeout=SECONDS, header={"Authorization": authorization}
        )
        try:
            yield socket
        finally:
            socket.close()

    def run_in_kernel(self, code: str) -> str:
        """Run a cell in a new kernel of a notebook, and return all that it printed."""
        path = "notebooks/00_start_here.ipynb"
        model = {"name": "x", "path": path, "type": "notebook", "kernel": {"name": "python3"}}
        session = self.ask("POST", f"{self.server}/api/sessions", json=model).json()
        printed, content = [], {"code": code, "silent": False, "allow_stdin": False}
        header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "version": "5.3"}
        header |= {"username": self.name, "session": uuid.uuid4().hex, "date": ""}
        with self.connected(f"api/kernels/{session['kernel']['id']}/channels") as socket:
            request = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
            socket.send(json.dumps({**request, "channel": "shell"}))
            while True:
                message = json.loads(socket.recv())
                if message["parent_header"].get("msg_id") != header["msg_id"]:
                    continue
                about = message["content"]
                if message["msg_type"] in ("stream", "error"):
                    printed.append(about.get("text") or "\n".join(about["traceback"]))
                if about.get("execution_state") == "idle":
                    return "".join(printed)

    def run_in_terminal(self, line: str) -> str:
        """Type a line into a new terminal, end the terminal, and return what it showed."""
        terminal = self.ask("POST", f"{self.server}/api/terminals").json()["name"]
        shown = []
        with self.connected(f"terminals/websocket/{terminal}") as socket:
            socket.send(json.dumps(["stdin", f"{line}; exit\r"]))
            while True:
                kind, *words = json.loads(socket.recv())
                if kind == "disconnect":
                    return "".join(shown)
                if kind == "stdout":
                    shown += words
