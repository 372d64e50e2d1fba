"""The container for laptops and Codespaces agrees with the README and with what `make` does."""

import json
import re

from hvdcourse.paths import PROJECT

FOLDER = PROJECT / ".devcontainer"
RECIPE = (FOLDER / "Dockerfile").read_text()
MAKEFILE = (PROJECT / "Makefile").read_text()


def packages(text):
    """Return what `apt-get install` gets in a text."""
    commands = re.findall(r"apt-get install((?:\\\n|[^\n&])+)", text)
    return {word for command in commands for word in re.findall(r"\s([a-z][\w+.-]+)", command)}


def test_it_installs_what_the_readme_does():
    readme = (PROJECT / "README.md").read_text()
    needs = readme.partition("## What you need\n")[2].partition("\n## ")[0]
    assert {"g++", "make"} <= packages(needs) <= packages(RECIPE)


def test_codespaces_builds_a_stage_that_is_there():
    settings = json.loads((FOLDER / "devcontainer.json").read_text())
    build = settings["build"]
    assert (FOLDER / build["dockerfile"]).samefile(FOLDER / "Dockerfile")
    assert re.search(rf"^FROM \S+ AS {build['target']}$", RECIPE, re.MULTILINE)
    assert (FOLDER / build["context"]).samefile(PROJECT)
    assert f"\nUSER {settings['remoteUser']}\n" in RECIPE


def test_it_calls_targets_that_are_there():
    targets = set(re.findall(r'(?:"make", "|RUN make )([a-z-]+)', RECIPE))
    assert targets == {"setup", "lab"}
    assert targets <= set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    assert "$(LAB_ARGUMENTS)" in MAKEFILE
