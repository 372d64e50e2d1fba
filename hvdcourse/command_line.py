"""Command lines: the script's own, and the launcher's that anyone can type."""

import os
import shlex
from typing import Any


def arguments_from(options: dict[str, Any]) -> list[str]:
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


def equivalent_command(job: dict[str, Any]) -> str:
    """Return the ``horovodrun`` line that starts the same ranks from a terminal."""
    script = os.path.relpath(job["script"])
    words = ["horovodrun", "-np", str(job["np"]), f"--{job['backend']}", "python", script]
    return shlex.join([*words, *job["arguments"]])
