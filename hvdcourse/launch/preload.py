"""What the fork server imports and sets once, for all ranks that are forked from it.

Nothing is computed here: threads do not survive a fork.
"""

import gc
import importlib
import os
import sys
from types import TracebackType

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
# NumPy's own threads, one a core, wait for work in a loop, and keep all ranks from their cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
for _name in ("numpy", "tensorflow", "horovod.tensorflow.keras", "hvdcourse.launch.supervisor"):
    importlib.import_module(_name)
importlib.import_module("hvdcourse.rank.tracing").create_state_once()
# The garbage collector of a forked process need not look through all of this again.
gc.freeze()


def _say_nothing_without_work(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    # Ctrl-C may come when a process was asked for, and before it was sent what to do.
    if kind is not EOFError:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _say_nothing_without_work
