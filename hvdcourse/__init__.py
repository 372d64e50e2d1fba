"""Scaling Deep Learning with Horovod: what the lessons, exercises and checks import.

Importing this package is cheap: it does not import TensorFlow or Horovod.
"""

from hvdcourse.environment import prepare_environment

prepare_environment()

from hvdcourse.check import check  # noqa: E402
from hvdcourse.launch import run  # noqa: E402
from hvdcourse.report import report  # noqa: E402

__all__ = ["check", "report", "run"]
