"""Scaling Deep Learning with Horovod: what the lessons, exercises and checks import.

Importing this package is cheap, since every rank does it: TensorFlow, Horovod and the tables of
verdicts are imported when they are used.
"""

from importlib import import_module
from typing import Any

from hvdcourse.environment import prepare_environment

prepare_environment()

_PUBLIC = {
    "check": "hvdcourse.checking",
    "report": "hvdcourse.reports",
    "run": "hvdcourse.launch",
}
__all__ = ["check", "report", "run"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'hvdcourse' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
