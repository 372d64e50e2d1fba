"""Scaling Deep Learning with Horovod: what the lessons, exercises and checks import.

Importing this package is cheap, since every rank does it: TensorFlow, Horovod and the tables of
verdicts are imported when they are used.
"""

import os
import sys
from importlib import import_module
from typing import Any

# With sudo, Python would leave its bytecode in the learner's folders as root's; theirs, too.
sys.dont_write_bytecode |= "SUDO_UID" in os.environ

from hvdcourse.machine.environment import prepare_environment  # noqa: E402
from hvdcourse.rank.place import take_share_of_cores  # noqa: E402

prepare_environment()
take_share_of_cores()

_PUBLIC = {
    "check": "hvdcourse.checks.check",
    "compare_ranks": "hvdcourse.plots.ranks",
    "load": "hvdcourse.data.sets",
    "predict": "hvdcourse.checks.prediction",
    "record": "hvdcourse.rank.reports",
    "report": "hvdcourse.rank.reports",
    "report_epoch": "hvdcourse.rank.elastic_reports",
    "report_metrics": "hvdcourse.rank.reports",
    "run": "hvdcourse.launch.run",
    "run_elastic": "hvdcourse.launch.elastic",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'hvdcourse' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
