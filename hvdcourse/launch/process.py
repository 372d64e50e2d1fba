"""Starts a module of the package as a process of its own: anew, or forked where that is quicker.

Importing TensorFlow and Horovod keeps a core busy for 3 to 5 seconds, longer than most checks
compute. The fork server of the standard library imports them once for a process that starts
several runs, and ends with it:
https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods
"""

import importlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any

from hvdcourse.machine.gpus import visible_gpus
from hvdcourse.machine.signals import undisturbed

PRELOADED = "hvdcourse.launch.preload"
# A process, or a library, reads variables with these beginnings when it starts, and not later.
_READ_AT_START = (
    *("PYTHON", "LD_", "MALLOC_", "TF_", "XLA_", "OMP_", "KMP_", "OPENBLAS_", "MKL_", "CUDA_"),
    *("NCCL_", "GRPC_", "OPAL_", "COVERAGE_"),
)
_LOCK = threading.Lock()
# The variables of this kind that the fork server has started with.
_OF_SERVER: dict[str, str] = {}


def read_at_start(environment: dict[str, str]) -> dict[str, str]:
    """Return the variables that must stand before a process starts."""
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


def can_fork(backend: str, environment: dict[str, str]) -> bool:
    """Tell whether forked ranks of a run are the same as newly started ones."""
    if environment.get("HVDCOURSE_FORK", "1") == "0" or backend != "gloo" or visible_gpus():
        return False
    return read_at_start(environment) == read_at_start(dict(os.environ))


def start_process(module: str, arguments: tuple[Any, ...], *, forked: bool) -> BaseProcess:
    """Have ``main(*arguments)`` of a module run in a process of its own, and return that process.

    Args:
        module: its name; this process need not import it.
        arguments: what can be pickled, open connections included.
        forked: from the fork server, which is started if need be. Where it cannot be had, the
            process is started anew.
    """
    with _LOCK, _without_main_module():
        if forked and _server_fits():
            with suppress(OSError, EOFError):
                # A new server inherits that it does not hear Ctrl-C.
                with undisturbed(), _unbuffered():
                    forkserver.ensure_running()
                return _started(
                    multiprocessing.get_context("forkserver").Process, module, arguments
                )
        with undisturbed():
            return _started(multiprocessing.get_context("spawn").Process, module, arguments)


@contextmanager
def _unbuffered() -> Iterator[None]:
    # Python looks at it when it starts, which a forked rank does not.
    before = os.environ.get("PYTHONUNBUFFERED")
    os.environ["PYTHONUNBUFFERED"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONUNBUFFERED"]
        else:
            os.environ["PYTHONUNBUFFERED"] = before


def _server_fits() -> bool:
    """Tell whether the fork server has this process's environment, after a new start if need be."""
    multiprocessing.set_forkserver_preload([PRELOADED])
    environment = read_at_start(dict(os.environ))
    if environment != _OF_SERVER:
        if multiprocessing.active_children():
            return False
        forkserver._forkserver._stop()  # type: ignore[attr-defined]
        _OF_SERVER.clear()
        _OF_SERVER.update(environment)
    return True


def _started(
    kind: Callable[..., BaseProcess], module: str, arguments: tuple[Any, ...]
) -> BaseProcess:
    process = kind(target=_run_main, args=(module, arguments), daemon=True)
    process.start()
    return process


def _run_main(module: str, arguments: tuple[Any, ...]) -> None:
    sys.excepthook = sys.__excepthook__  # The fork server's own is for processes without work.
    importlib.import_module(module).main(*arguments)


@contextmanager
def _without_main_module() -> Iterator[None]:
    # A new process would otherwise run the caller's script, to have what it defines.
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
