"""How many NVIDIA GPUs a process may use, and what the driver says of them.

TensorFlow is not asked: it would take them.
"""

import ctypes
import functools
import os
import shutil
import subprocess
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

DEVICES = Path("/dev")
VARIABLE = "CUDA_VISIBLE_DEVICES"
# What hides all GPUs from a process.
NONE_VISIBLE = {VARIABLE: "-1"}
# The last that TensorFlow 2.21 loads: without it, it computes on the processor's cores.
LIBRARY = "libcudnn.so.9"


class NvidiaSmiError(RuntimeError):
    """The driver's program is there and does not answer; the message has its last line."""


def ask_nvidia_smi(*arguments: str, timeout: float = 30) -> str | None:
    """Return what ``nvidia-smi`` prints with these arguments, None without that program.

    Raises:
        NvidiaSmiError: the program failed, or did not end within ``timeout`` seconds.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = " ".join(("nvidia-smi", *arguments))
    repair = "have the NVIDIA driver repaired"
    try:
        answer = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        raise NvidiaSmiError(f"{command} did not end within {timeout:g} s; {repair}") from None
    except OSError as error:
        raise NvidiaSmiError(f"{command} cannot be started: {error.strerror}; {repair}") from None
    if answer.returncode != 0:
        output = answer.stderr.strip() or answer.stdout.strip() or "it printed nothing"
        raise NvidiaSmiError(f"{command} failed: {output.splitlines()[-1]}; {repair}")
    return answer.stdout


@functools.cache
def has_libraries() -> bool:
    """Tell whether TensorFlow finds CUDA's libraries: in the extra ``gpu``, or on the machine."""
    with suppress(ModuleNotFoundError):
        if find_spec("nvidia.cudnn"):
            return True
    with suppress(OSError):
        ctypes.CDLL(LIBRARY)
        return True
    return False


def visible_gpus() -> int:
    """Return how many GPUs TensorFlow can use, less those that ``CUDA_VISIBLE_DEVICES`` hides.

    See https://docs.nvidia.com/cuda/cuda-programming-guide: what stands behind a number that is
    not valid, such as -1, is hidden, too.
    """
    present = len(list(DEVICES.glob("nvidia[0-9]*")))
    if not present or not has_libraries():
        return 0
    chosen = os.environ.get(VARIABLE)
    if chosen is None:
        return present
    names = [name.strip() for name in chosen.split(",")]
    hidden = [name in ("", "-1") for name in names]
    return min(present, hidden.index(True) if any(hidden) else len(names))


def gpus_for(np: int) -> int:
    """Return how many GPUs so many ranks of this machine use: one each, or none at all.

    NCCL refuses two ranks on one GPU. Without enough of them they compute on the processor's cores.
    """
    return np if visible_gpus() >= np else 0


def enough_gpus(np: int) -> dict[str, str]:
    """Return the variable that hides the GPUs where there are some, but too few for the ranks."""
    return NONE_VISIBLE if visible_gpus() and not gpus_for(np) else {}
