"""A newcomer's way in a real browser: `make lab`, the first lesson, Run All Cells."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import expect, sync_playwright
from tornado.websocket import websocket_connect

PROJECT = Path(__file__).resolve().parent.parent.parent
LAB_SECONDS = 120
NOTEBOOK_SECONDS = 300
START_SECONDS = 20
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture
def lab_url(tmp_path):
    """Start JupyterLab as `make lab` does, on a free port, and stop it afterwards."""
    log = tmp_path / "lab.log"
    # The test must leave no trace in the notebook, the learner's workspace or progress.
    environment = {
        **os.environ,
        "JUPYTERLAB_WORKSPACES_DIR": str(tmp_path / "workspaces"),
        "HVDCOURSE_STATE": str(tmp_path / "state"),
    }
    settings = tmp_path / "settings" / "@jupyterlab" / "docmanager-extension"
    settings.mkdir(parents=True)
    (settings / "plugin.jupyterlab-settings").write_text('{"autosave": false}')
    arguments = "LAB_ARGUMENTS=--no-browser --ServerApp.port=0"
    arguments += f" --LabApp.user_settings_dir={tmp_path / 'settings'}"
    with log.open("w") as file:
        lab = subprocess.Popen(
            ["make", "lab", arguments],
            cwd=PROJECT,
            env=environment,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield wait_for_url(lab, log)
    finally:
        os.killpg(lab.pid, signal.SIGTERM)
        lab.wait(30)


def wait_for_url(lab, log):
    deadline = time.monotonic() + LAB_SECONDS
    while time.monotonic() < deadline and lab.poll() is None:
        found = re.search(r"http://localhost:[1-9]\d*/lab\S*\?token=\w+", log.read_text())
        if found:
            return found[0]
        time.sleep(0.2)
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text()}")


@pytest.fixture
def page():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=CHROMIUM_FLAGS
        )
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        yield page
        browser.close()


@pytest.mark.timeout(LAB_SECONDS + NOTEBOOK_SECONDS + 120)
def test_first_lesson_runs_in_jupyterlab(lab_url, page, tmp_path):
    before = (PROJECT / "notebooks/00_start_here.ipynb").read_bytes()
    page.goto(lab_url)
    notebook = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook")
    expect(notebook).to_be_visible(timeout=60_000)
    expect(notebook.get_by_role("heading", name="Lesson 0: start here")).to_be_visible(
        timeout=60_000
    )
    expect(page.locator(".jp-NotebookPanel .jp-Notebook-ExecutionIndicator")).to_have_attribute(
        "data-status", "idle", timeout=60_000
    )
    run_all_cells(page, notebook)
    wait_for_verdict(page, notebook, tmp_path / "lab.log")
    if os.environ.get("HVDCOURSE_SCREENSHOT"):
        page.screenshot(path=os.environ["HVDCOURSE_SCREENSHOT"])
    seen = read_whole(page, notebook)
    assert "This machine is ready." in seen["text"]
    assert "rank 3 of 4: brought" in seen["text"]
    assert "each of ranks 0, 1 and 2: reported {'rank': 0, 'size': 1" in seen["text"]
    assert seen["plots"] >= 1
    assert seen["errors"] == ""
    assert (PROJECT / "notebooks/00_start_here.ipynb").read_bytes() == before


@pytest.mark.timeout(3 * LAB_SECONDS)
def test_a_terminal_of_jupyterlab_knows_the_commands_of_the_course(lab_url):
    server, _, token = re.match(r"http://([^/]+)(.*)[?]token=(\w+)", lab_url).groups()
    asked = urllib.request.Request(f"http://{server}/api/terminals?token={token}", method="POST")
    with urllib.request.urlopen(asked) as answer:
        name = json.load(answer)["name"]
    address = f"ws://{server}/terminals/websocket/{name}?token={token}"
    # What is typed is shown, too, once or twice: so it must not contain the last word.
    typed = "which hvdcourse horovodrun; echo to''ld\r"
    shown = asyncio.run(asyncio.wait_for(type_into(address, typed, "told"), LAB_SECONDS))
    for command in ("hvdcourse", "horovodrun"):
        assert str(PROJECT / ".venv" / "bin" / command) in shown


async def type_into(address, text, last):
    """Type into a terminal of JupyterLab; return what it shows up to this last word."""
    socket = await websocket_connect(address)
    await socket.write_message(json.dumps(["stdin", text]))
    shown = ""
    while last not in shown:
        kind, *parts = json.loads(await socket.read_message())
        shown += parts[0] if kind == "stdout" else ""
    return shown


def run_all_cells(page, notebook):
    """Choose Run All Cells, and again if no cell begins."""
    for _ in range(3):
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name=re.compile("^Run All Cells")).first.click()
        try:
            expect(notebook.get_by_text("[*]:").first).to_be_attached(timeout=START_SECONDS * 1000)
            return
        except AssertionError:
            page.keyboard.press("Escape")
    raise AssertionError(f"no cell began to run; the page has:\n{page.inner_text('body')}")


def wait_for_verdict(page, notebook, log):
    """Wait for the last code cell, the check, or else tell what there is instead."""
    # The recorded verdicts are in a cell of text.
    cells = notebook.locator(".jp-CodeCell")
    verdict = cells.get_by_text(re.compile(r"mpi_concepts: \d of 1 steps met"))
    # An error ends Run All Cells.
    error = notebook.locator('[data-mime-type="application/vnd.jupyter.error"]')
    try:
        expect(verdict.or_(error).first).to_be_attached(timeout=NOTEBOOK_SECONDS * 1000)
        expect(error).to_have_count(0)
    except AssertionError:
        cells = [cell.text_content() for cell in notebook.locator(".jp-CodeCell").all()]
        commands = [" ".join(one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
        running = [line[:150] for line in commands if "hvdcourse" in line or "horovod" in line]
        seen = [f"{cell[:60]} … {cell[-600:]}" for cell in cells]
        parts = ["no verdict; the cells:", *seen, "what runs:", *running, log.read_text()[-1500:]]
        raise AssertionError("\n".join(parts)) from None


def read_whole(page, notebook):
    """Scroll through the notebook, since JupyterLab keeps only the visible cells in the page."""
    seen = {"text": "", "plots": 0, "errors": ""}
    panel = notebook.locator(".jp-WindowedPanel-outer")
    end = panel.evaluate("element => element.scrollHeight")
    for position in range(0, end, 500):
        panel.evaluate("(element, top) => element.scrollTo(0, top)", position)
        page.wait_for_timeout(300)
        seen["text"] += notebook.inner_text()
        seen["plots"] += notebook.locator(".jp-OutputArea-output img").count()
        for kind in ("error", "stderr"):
            found = notebook.locator(f'[data-mime-type="application/vnd.jupyter.{kind}"]')
            seen["errors"] += "".join(found.all_inner_texts())
    return seen
