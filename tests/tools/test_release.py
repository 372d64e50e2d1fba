"""What happens on GitHub calls make alone, and a release has its part of the changelog."""

import os
import re
import subprocess

import pytest
import yaml

from hvdcourse.paths import PROJECT

WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_make_and_nothing_else(path):
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        for line in (step["run"] for step in job["steps"] if "run" in step):
            called = re.fullmatch(r'(?:sudo env "PATH=\$PATH" CI=true )?make ((?:[\w-]+ ?)+)', line)
            assert called, line
            assert set(called[1].split()) <= TARGETS


def release(project, version):
    """Make a release of a course and a book that were built before, with a container tool."""
    for folder in ("tools", "build/course", "build/book/html", ".devcontainer", "bin"):
        (project / folder).mkdir(parents=True)
    (project / "tools/release.sh").write_text((PROJECT / "tools/release.sh").read_text())
    (project / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 2.0 - today\n\nNew.\n\n## 1.0 - then\n\nOld.\n"
    )
    tool = project / "bin" / "docker"
    tool.write_text("#!/bin/sh\necho image\n")
    tool.chmod(0o755)
    environment = os.environ | {"PATH": f"{tool.parent}:{os.environ['PATH']}"}
    return subprocess.run(
        ["sh", "tools/release.sh", version],
        cwd=project, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_a_release_has_the_notes_of_its_version_alone(tmp_path):
    assert release(tmp_path, "2.0").returncode == 0
    folder = tmp_path / "build" / "release"
    assert (folder / "notes.md").read_text().strip() == "New."
    archives = {"book.tar.gz", "image.tar.gz", "solved-course.tar.gz"}
    assert {path.name for path in folder.iterdir()} == archives | {"notes.md"}


def test_a_version_that_the_changelog_does_not_name_is_not_released(tmp_path):
    result = release(tmp_path, "3.0")
    assert result.returncode == 1
    assert "CHANGELOG.md says nothing of version 3.0" in result.stderr
