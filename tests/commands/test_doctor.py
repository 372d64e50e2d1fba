"""The examination of a machine: healthy here, and a named fix for each thing that can be wrong."""

import json
import os
import subprocess
import sys
import types
from importlib import metadata

import pytest
from rich.console import Console
from watching import HVDCOURSE

from hvdcourse.commands import doctor

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(240), pytest.mark.usefixtures("nothing_left")]


def by_name(findings) -> dict[str, doctor.Finding]:
    return {finding.name: finding for finding in findings}


def test_this_machine_is_healthy_and_has_what_the_course_needs():
    done = subprocess.run([HVDCOURSE, "doctor", "--json"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    diagnosis = json.loads(done.stdout)
    assert diagnosis["healthy"] is True
    values = {finding["name"]: finding["found"] for finding in diagnosis["findings"]}
    assert values["cores"] == str(len(os.sched_getaffinity(0)))
    assert values["horovod"] == metadata.version("horovod")
    assert values["Keras generation"] == "Keras 2"
    assert {"Gloo", "MPI"} <= set(values["Horovod's build"].split(", "))
    for backend in ("gloo", "mpi"):
        assert values[f"2-rank allreduce over {backend}"] == "mean of 1 and 2 is [1.5, 1.5]"


def test_a_missing_package_is_named_with_its_fix(monkeypatch):
    version = metadata.version

    def without_mpi4py(name):
        if name == "mpi4py":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(doctor.metadata, "version", without_mpi4py)
    finding = by_name(doctor.package_findings())["mpi4py"]
    assert (finding.well, finding.found, finding.fix) == (False, "missing", "run `make setup`")


def test_a_missing_keras_is_no_crash(monkeypatch):
    def nothing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.metadata, "version", nothing)
    findings = by_name(doctor.package_findings())
    assert not findings["keras"].well
    assert not findings["Keras generation"].well


def test_keras_3_is_named_with_its_fix(monkeypatch):
    monkeypatch.setattr(doctor.metadata, "version", lambda name: "3.5.0")
    finding = by_name(doctor.package_findings())["Keras generation"]
    assert (finding.well, finding.found) == (False, "Keras 3")
    assert "Keras 2 as `keras`; run `make setup`" in finding.fix


def test_a_keras_that_hides_keras_2_is_named_with_its_fix(monkeypatch, tmp_path):
    keras = tmp_path / "keras" / "__init__.py"
    keras.parent.mkdir()
    keras.touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    finding = by_name(doctor.package_findings())["Keras generation"]
    assert (finding.well, finding.found) == (False, f"Keras of {keras.parent}")
    assert f"{keras.parent} hides it" in finding.fix
    assert "PYTHONPATH" in finding.fix


def test_little_memory_and_disk_are_named_with_their_fixes(monkeypatch):
    little = types.SimpleNamespace(total=2 * 2**30, available=2**30, free=2**28)
    monkeypatch.setattr(doctor.psutil, "virtual_memory", lambda: little)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: little)
    findings = by_name(doctor.machine_findings())
    assert findings["memory"].found == "2.0 GiB, of which 1.0 GiB are free"
    assert (findings["memory"].well, findings["free disk"].well) == (False, False)
    assert "close other programs" in findings["memory"].fix
    assert "1 GiB" in findings["free disk"].fix


@pytest.mark.parametrize(
    ("folder", "why"), [("/nowhere", "No such file or directory"), ("/proc/self", "")]
)
def test_a_temporary_folder_that_takes_no_files_is_named_with_its_fix(folder, why, monkeypatch):
    monkeypatch.setenv("TMPDIR", folder)
    finding = doctor.temporary_folder_finding()
    assert not finding.well
    assert finding.found.startswith(f"{folder}: {why}")
    assert f"make room in {folder}, or set TMPDIR" in finding.fix


@pytest.mark.parametrize("status", [0, 9])
@pytest.mark.parametrize("libraries", [True, False])
def test_gpus_are_listed_and_what_is_missing_named(libraries, status, monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "has_libraries", lambda: libraries)
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho 'GPU 0: a card'\nexit {status}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    finding = doctor.gpu_finding()
    assert "GPU 0: a card" in finding.found
    assert ("no CUDA libraries" in finding.found) is (status == 0 and not libraries)
    assert finding.well is (status == 0)
    assert ("NVIDIA driver" in finding.fix) is (status != 0)


def test_a_machine_without_gpus_is_well(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.gpu_finding().well
    assert doctor.without_nccl("Gloo, MPI") == ""


def test_gpus_beside_a_build_without_nccl_are_named(monkeypatch):
    monkeypatch.setattr(doctor, "visible_gpus", lambda: 1)
    assert doctor.without_nccl("Gloo, MPI, NCCL") == ""
    assert "do not use the GPUs" in doctor.without_nccl("Gloo, MPI")


def test_a_gpu_that_tensorflow_does_not_find_is_named_with_its_fix(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    finding = doctor.nccl_finding()
    assert (finding.found, finding.well) == ("TensorFlow finds 0; done on CPU:0", False)
    assert "`make gpu`" in finding.fix


def test_a_rank_that_fails_on_the_gpu_is_named(monkeypatch, tmp_path):
    script = tmp_path / "fails.py"
    script.write_text("raise RuntimeError('CUDA driver version is insufficient')")
    monkeypatch.setattr(doctor, "ONE_RANK_ON_A_GPU", script)
    finding = doctor.nccl_finding()
    assert not finding.well
    assert "driver version is insufficient" in finding.found


def test_a_driver_that_does_not_answer_is_named(monkeypatch):
    def hang(*_):
        raise doctor.NvidiaSmiError("nvidia-smi -L did not end within 30 s")

    monkeypatch.setattr(doctor, "ask_nvidia_smi", hang)
    finding = doctor.gpu_finding()
    assert not finding.well
    assert "did not end within 30 s" in finding.found


WRONG_MEAN = "from hvdcourse import report; report('built with', 'MPI'); report('mean', 2.0)"
FAILURES = [
    ("gloo", "raise OSError('libmpi.so.40: cannot open')", "run `make clean` and `make setup`"),
    ("mpi", "import a_missing_package", "a package is missing; run `make setup`"),
    ("gloo", "raise RuntimeError('no route')", "`ip link set lo up`"),
    (
        "mpi",
        "raise RuntimeError('no route')",
        "is the temporary folder well, and OPAL_PREFIX unset",
    ),
    ("mpi", WRONG_MEAN, "is the temporary folder well, and OPAL_PREFIX unset"),
]


@pytest.mark.parametrize(("backend", "line", "fix"), FAILURES)
def test_a_run_of_two_ranks_that_goes_wrong_is_named_with_its_fix(
    backend, line, fix, monkeypatch, script
):
    monkeypatch.setattr(doctor, "TWO_RANKS", script(line))
    finding = doctor.two_rank_findings(backend)[-1]
    assert finding.name == f"2-rank allreduce over {backend}"
    assert not finding.well
    assert fix in finding.fix


def test_a_healthy_machine_is_ready(capsys):
    doctor.Diagnosis([doctor.Finding("cores", "2")]).print(Console(width=80))
    assert capsys.readouterr().out.endswith("This machine is ready.\n")


def test_what_is_wrong_makes_the_diagnosis_unhealthy_and_prints_the_fix(capsys):
    findings = [doctor.Finding("cores", "2"), doctor.Finding("memory", "1 GiB", False, "buy more")]
    diagnosis = doctor.Diagnosis(findings)
    assert not diagnosis.healthy
    diagnosis.print(Console(width=80))
    assert "memory: buy more\nThis machine is not ready yet." in capsys.readouterr().out


def test_what_a_library_prints_in_brackets_is_shown_as_it_is(capsys):
    message = "what():  [/src/gloo/transport/tcp/pair.cc:572] Connection closed"
    doctor.Diagnosis([doctor.Finding("gloo", message, False, "a fix")]).print(Console(width=100))
    assert message in capsys.readouterr().out


def test_the_command_ends_with_1_where_horovod_cannot_be_loaded(script, tmp_path):
    script("raise ImportError('libmpi.so.40: cannot open shared object file')", "horovod.py")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [HVDCOURSE, "doctor"], capture_output=True, text=True, env=environment, timeout=200
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for backend in ("gloo", "mpi"):
        assert f"2-rank allreduce over {backend}: " in done.stdout
    assert done.stdout.endswith("This machine is not ready yet.\n")
