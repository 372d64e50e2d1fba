"""The command that does one run of a study again."""

import json
import shlex
from typing import Any

from hvdcourse.study.condition import Condition

_WORKER = ("python", "-m", "hvdcourse.study.worker")


def command_of(run: dict[str, Any], ranks: int) -> str:
    """Return the command with all settings of the run, for its record."""
    settings = {name: value for name, value in run["settings"].items() if value is not None}
    words = ["horovodrun", "-np", str(ranks), "--gloo", *_WORKER, "--records", "again.jsonl"]
    return shlex.join([*words, "--run", json.dumps({**run, "settings": settings})])


def short_command_of(run: dict[str, Any], ranks: int) -> str:
    """Return the command with those settings alone that are not the defaults, for a reader."""
    usual = vars(Condition())
    settings = {name: value for name, value in run["settings"].items() if usual[name] != value}
    return command_of({**run, "settings": settings}, ranks)
