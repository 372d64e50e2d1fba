"""The environment: what is built and locked, and what is said when a tool is missing."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hvdcourse.paths import PROJECT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text())


def conda_versions():
    environment = yaml.safe_load((PROJECT / "environment.yml").read_text())
    rows = (re.match(r"([\w-]+)(.*)", row).groups() for row in environment["dependencies"])
    return dict(rows)


def dependency(name):
    rows = PYPROJECT["project"]["dependencies"]
    return next(row.removeprefix(name) for row in rows if re.match(rf"{name}[=<>!~]", row))


def test_conda_has_the_versions_of_pyproject():
    conda = conda_versions()
    assert conda["uv"] == "=" + (PROJECT / "tools/uv-version").read_text().strip()
    assert conda["cmake"] == dependency("cmake")
    minor = int(re.fullmatch(r"=3\.(\d+)", conda["python"])[1])
    low, high = re.fullmatch(
        r">=3\.(\d+),<3\.(\d+)", PYPROJECT["project"]["requires-python"]
    ).groups()
    assert int(low) <= minor < int(high)


def test_the_versions_that_the_readme_names_are_true():
    readme = (PROJECT / "README.md").read_text()
    low, beyond = re.findall(r"3\.(\d+)", PYPROJECT["project"]["requires-python"])
    assert f"Python 3.{low} to 3.{int(beyond) - 1}," in readme
    version = dependency("keras").removeprefix("==").rpartition(".")[0]
    assert f"runs on TensorFlow {version}." in readme


def test_horovod_finds_open_mpi_of_its_own_environment_first():
    """The wheel is cached: an absolute path would be that of the first environment built in."""
    library = next(
        Path(sys.prefix).glob("lib/python3*/site-packages/horovod/tensorflow/mpi_lib*.so")
    )
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True)
    run_path = re.search(r"R(?:UN)?PATH.*\[(.*)\]", dynamic.stdout)[1].split(":")
    assert run_path[0] == "$ORIGIN/../../../.."
    origin = library.parent
    first = Path(run_path[0].replace("$ORIGIN", str(origin))).resolve()
    assert first == Path(sys.prefix).resolve() / "lib"
    assert (first / "libmpi.so.40").exists()


def test_lock_names_the_public_index_alone():
    hosts = set(re.findall(r"https?://([^/\"]+)", (PROJECT / "uv.lock").read_text()))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_every_command_of_the_readme_exists():
    readme = (PROJECT / "README.md").read_text()
    for target in set(re.findall(r"(?:`|^    )make ([a-z-]+)", readme, re.M)):
        subprocess.run(["make", "-n", target], cwd=PROJECT, check=True, capture_output=True)
    known = subprocess.run(["hvdcourse", "--help"], capture_output=True, text=True, check=True)
    for command in set(re.findall(r"`hvdcourse ([a-z]+)", readme)):
        assert command in known.stdout


@pytest.fixture
def bare_project(tmp_path):
    """A copy of what setting up needs, and a PATH that holds nothing but a shell's own tools."""
    project, programs = tmp_path / "project", tmp_path / "bin"
    programs.mkdir()
    shutil.copytree(PROJECT / "tools", project / "tools")
    for name in ("sh", "cat", "cut", "dirname", "head", "rm", "sort", "make", "g++", "python3"):
        (programs / name).symlink_to(shutil.which(name))
    return project, programs


def set_up(project, programs):
    script = project / "tools" / "setup.sh"
    return subprocess.run(
        [script], env={"PATH": str(programs)}, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("program", ["g++", "make", "python3"])
def test_a_missing_program_is_one_line_that_names_its_package(bare_project, program):
    project, programs = bare_project
    (programs / program).unlink()
    done = set_up(project, programs)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert f"error: {program} is missing" in done.stderr
    assert "apt-get install" in done.stderr


def test_a_missing_venv_module_is_one_line_that_names_its_package(bare_project):
    project, programs = bare_project
    (programs / "python3").unlink()
    (programs / "python3").write_text("#!/bin/sh\necho 'No module named venv' >&2\nexit 1\n")
    (programs / "python3").chmod(0o755)
    done = set_up(project, programs)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "sudo apt-get install python3-venv" in done.stderr
    assert not (project / ".uv").exists()
