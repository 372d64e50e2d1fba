"""Python imports this when it starts where ``launch`` has put this folder on PYTHONPATH.

It turns ``python SCRIPT`` in a rank into ``python -m hvdcourse.rank.main SCRIPT``, which runs the
script and records how it goes. It keeps horovodrun's rendezvous server to this machine, spares
horovodrun an import of TensorFlow, and lets it see how each worker ended. So the line that starts
the ranks is the one that anybody types, and the environment decides what is recorded. See
https://docs.python.org/3/library/site.html#module-sitecustomize
"""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_RANK = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK")


def _leave_python_path() -> None:
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = (folder for folder in folders if folder and folder != _FOLDER)
    os.environ["PYTHONPATH"] = os.pathsep.join(others)
    if not os.environ["PYTHONPATH"]:
        del os.environ["PYTHONPATH"]


def _start() -> None:
    words = sys.orig_argv[1:]
    if "HVDCOURSE_RUN_FOLDER" not in os.environ or not words:
        return
    if any(name in os.environ for name in _RANK):
        _leave_python_path()
        # The workers of an elastic job come and go: they report for themselves.
        if not words[0].startswith("-") and "HOROVOD_ELASTIC" not in os.environ:
            os.execv(sys.executable, [sys.executable, "-m", "hvdcourse.rank.main", *words])
    elif os.path.basename(words[0]) == "horovodrun":
        from multiprocessing import process

        from horovod.common import util

        from hvdcourse.launch.rendezvous import keep_local

        keep_local()
        # The setup builds Horovod with both. To ask, horovodrun would import TensorFlow: 3 seconds.
        util.gloo_built = util.mpi_built = lambda **_: True
        # A thread that starts a process also takes the exit status of those that have ended, and
        # a caller that waits for one finds none: https://github.com/python/cpython/issues/148318
        process._cleanup = lambda: None  # type: ignore[attr-defined]


_start()
