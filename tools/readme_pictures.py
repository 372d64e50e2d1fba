"""Makes the two pictures of the README: a check in a terminal, and a lesson in JupyterLab.

``python tools/readme_pictures.py`` needs Chromium and ``tools/setup.sh --group browser``. The
commands run for real. How long they take says more of the machine, so the picture always shows the
same wait.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
from PIL import Image
from playwright.sync_api import sync_playwright
from record_verdicts import SECONDS
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from rich.text import Text

from hvdcourse.paths import IMAGES, PROJECT, SOLUTIONS, SOURCE_CODE

COLUMNS = 80
CHECK = "hvdcourse check mpi_concepts 4"
COMMANDS = (CHECK, "cp ../solutions/mpi_concepts_after_step_04.py mpi_concepts.py", CHECK)
WAITING_SECONDS, READING_SECONDS = 3, 5
# As rich writes it, without its fonts, which are on another host.
TERMINAL = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
svg > rect {{ stroke: #888 }}
text {{ font: {char_height}px 'DejaVu Sans Mono', Menlo, Consolas, monospace; white-space: pre }}
{styles}
.{unique_id}-matrix text {{ animation: PERIOD infinite step-end }}
@media (prefers-reduced-motion) {{ .{unique_id}-matrix text {{ animation: none !important }} }}
</style>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
LESSON, HEADING, BELOW_PLOT = "04_convergence", "The break", "The large batch has learned nothing"
SIZE = {"width": 1150, "height": 700}


@contextmanager
def script_without_step_4() -> Iterator[None]:
    """Put a script into `source_code/` whose step 4 is still to do, and restore what was there."""
    script = SOURCE_CODE / "mpi_concepts.py"
    before = script.read_bytes()
    try:
        shutil.copy(SOLUTIONS / "mpi_concepts_after_step_03.py", script)
        yield
    finally:
        script.write_bytes(before)


def record_check(file: Path) -> None:
    """Run the commands in a terminal, and write what it showed as an SVG that moves."""
    screen = Console(file=io.StringIO(), record=True, width=COLUMNS, color_system="truecolor")
    now, shown = 0, []  # the second at which each line appears
    for command in COMMANDS:
        now += 1
        screen.print(Text.assemble(("$ ", "bold #188a3a"), command))
        shown.append(now)
        output = pexpect.run(
            command,
            cwd=SOURCE_CODE,
            env={**os.environ, "COLORTERM": "truecolor"},
            timeout=120,
            dimensions=(40, COLUMNS),
            encoding="utf-8",
        )
        if text := Text.from_ansi(SECONDS.sub("", output.replace("\r", "").rstrip())):
            now += WAITING_SECONDS
            screen.print(text)
            shown += [now] * len(text.split())
            now += READING_SECONDS
    svg = screen.export_svg(
        title="", theme=DEFAULT_TERMINAL_THEME, code_format=TERMINAL, unique_id="check"
    )
    file.write_text(moving(svg, shown, now))


def moving(svg: str, shown: list[int], seconds: int) -> str:
    """Return the SVG of a terminal with each line hidden until its second, over and over."""

    def appear(match: re.Match[str]) -> str:
        return f'style="animation-name: at-{shown[int(match[1])]}"'

    frames = "".join(
        f"@keyframes at-{at} {{ from {{ opacity: 0 }} {at / seconds:.1%}, to {{ opacity: 1 }} }}\n"
        for at in dict.fromkeys(shown)
    )
    svg = re.sub(r'clip-path="url\(#check-line-(\d+)\)"', appear, svg)
    return svg.replace("PERIOD", f"{seconds}s").replace("</style>", f"{frames}</style>")


@contextmanager
def jupyterlab() -> Iterator[str]:
    """Start JupyterLab, with a workspace of its own, and yield its address."""
    with tempfile.TemporaryDirectory(prefix="hvdcourse-") as folder:
        log = Path(folder, "log")
        command = f"{sys.executable} -m jupyterlab --no-browser --ServerApp.port=0 --allow-root"
        command += f" --notebook-dir={PROJECT} --LabApp.workspaces_dir={folder}"
        command += f" --LabApp.app_settings_dir={PROJECT / 'tools/jupyterlab'}"
        with log.open("w") as file:
            lab = subprocess.Popen(command.split(), stderr=file)
        try:
            deadline = time.monotonic() + 60
            while not (
                link := re.search(r"(http://localhost:\d+)/lab(\?token=\w+)", log.read_text())
            ):
                if time.monotonic() > deadline:
                    raise SystemExit(f"error: JupyterLab did not start:\n{log.read_text()}")
                time.sleep(0.2)
            yield f"{link[1]}/lab/tree/notebooks/{LESSON}.ipynb{link[2]}"
        finally:
            lab.terminate()
            lab.wait(30)


def take_screenshot(address: str, file: Path) -> None:
    """Open a lesson at a plot, its contents at its side, and take a picture of it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport=SIZE, device_scale_factor=2)
        page.goto(address)
        page.get_by_role("tab", name="Table of Contents").click()
        page.locator(".jp-TableOfContents").get_by_text(HEADING, exact=True).click()
        text = page.locator(".jp-RenderedMarkdown p", has_text=BELOW_PLOT)
        text.evaluate("paragraph => paragraph.scrollIntoView({block: 'end'})")
        page.wait_for_timeout(2000)
        page.screenshot(path=file)
        browser.close()
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(128).save(file, optimize=True)


def main() -> None:
    """Write both pictures."""
    with script_without_step_4():
        record_check(IMAGES / "readme_check.svg")
    with jupyterlab() as address:
        take_screenshot(address, IMAGES / "readme_jupyterlab.png")


if __name__ == "__main__":
    main()
