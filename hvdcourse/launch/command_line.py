"""Command lines: the script's own, and the launcher's that anyone can type."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# What Horovod may communicate through.
BACKENDS = ("gloo", "mpi")


# What Python looks at when it starts in a rank, or in horovodrun.
_STARTUP = Path(__file__).with_name("startup")


def python_path(environment: Mapping[str, str]) -> str:
    """Return PYTHONPATH with ``startup`` in front, whose ``sitecustomize`` makes ranks record."""
    return os.pathsep.join(filter(None, [str(_STARTUP), environment.get("PYTHONPATH")]))


def arguments_from(options: Mapping[str, Any]) -> list[str]:
    """Turn ``{"epochs": 3, "warmup_epochs": 1, "resume": True}`` into command-line arguments.

    True gives the bare flag; False and None leave it out.
    """
    arguments = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(flag)
        elif value is not None and value is not False:
            arguments += [flag, str(value)]
    return arguments


def local_command(
    np: int, backend: str, script: str, arguments: Sequence[str], cores: Sequence[int] = ()
) -> list[str]:
    """Return the ``horovodrun`` line, as a list of words, that starts a script on this machine.

    With ``cores``, ``taskset`` keeps all that it starts to these.
    """
    kept = ["taskset", "--cpu-list", ",".join(map(str, cores))] if cores else []
    words = ["horovodrun", "-np", str(np), f"--{backend}", "python", os.path.relpath(script)]
    return [*kept, *words, *arguments]
