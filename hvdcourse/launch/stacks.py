"""Reads the call stack that a rank wrote when asked, and says where in the script it stood."""

import linecache
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

# A line of faulthandler's dump, or of a traceback.
_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+),? in (?P<function>\S+)$')

# Functions of Horovod's Python side, which are also there as ``_NAME``, ``NAME_``, ``NAME_async``
# and ``grouped_NAME``, and what each one runs.
_COLLECTIVES = {
    **{name: name for name in ("allreduce", "allgather", "broadcast", "alltoall")},
    **{name: name for name in ("reducescatter", "barrier", "join")},
    **{name: f"hvd.{name}()" for name in ("init", "shutdown")},
}
# Calls of mpi4py, which is compiled: no frame of its own shows that a rank waits in it.
_MPI4PY_CALL = re.compile(
    r"\.(Send|Ssend|Recv|Sendrecv|send|recv|sendrecv|[Ww]ait(?:all|any)?|[Bb]arrier|[Aa]llreduce"
    r"|[Bb]cast|[Aa]llgatherv?|[Aa]lltoallv?|Reduce|Gatherv?|Scatterv?|Reduce_scatter)\("
)
# What TensorFlow runs as a graph, such as a step of ``fit``, has no frames of its own.
IN_A_GRAPH = "a TensorFlow graph, which averages gradients or broadcasts variables"
# What observes a rank stands between the script and what it calls: observe.py, observe_*.py.
_OBSERVERS = str(find_spec("hvdcourse.rank.observe").origin).removesuffix(".py")  # type: ignore[union-attr]


@dataclass(frozen=True)
class Position:
    """Where in the script a rank stood: a line, its text, and the collective it waited in."""

    file: str
    line: int
    source: str
    waits_in: str | None

    def __str__(self) -> str:
        where = f"{self.file} line {self.line}: {self.source}"
        return f"waiting in {self.waits_in}, {where}" if self.waits_in else f"at {where}"


def waits_in(frames: list[tuple[str, str]]) -> str | None:
    """Return the collective that the innermost frames (file, function) belong to, if any."""
    own_gradient = False
    for file, function in frames:
        if "/horovod/" in file:
            plain = function.lstrip("_").removesuffix("_async").removesuffix("_")
            name = _COLLECTIVES.get(plain.removeprefix("grouped_"))
            if name is None and function == "gradient" and not own_gradient:
                # DistributedGradientTape averages in a graph, which has no frames.
                name = "allreduce"
            if name:
                return name
        own_gradient = own_gradient or file.endswith("/backprop.py")
    in_a_graph = any("/polymorphic_function/" in file for file, _ in frames)
    return IN_A_GRAPH if in_a_graph else None


def position_from_stack_file(stack_file: Path, script: str) -> Position | None:
    """Return where the script stood by the last stack in the file, or None without one."""
    try:
        text = stack_file.read_text(errors="replace")
    except FileNotFoundError:
        return None
    return find_position(text.rpartition("most recent call first")[2].splitlines(), script)


def position_from_traceback(text: str, script: str) -> Position | None:
    """Return where the script stood when it got the error whose traceback this is."""
    return find_position(reversed(text.splitlines()), script)


def find_position(lines: Iterable[str], script: str) -> Position | None:
    """Return the innermost place in the script; the lines start with the innermost frame."""
    inner: list[tuple[str, str]] = []
    for match in filter(None, map(_FRAME.match, lines)):
        if match["file"] == script:
            line = int(match["line"])
            linecache.checkcache(script)  # the learner may have edited it since the last run
            source = linecache.getline(script, line).strip()
            collective = waits_in(inner)
            if collective is None and not inner and (call := _MPI4PY_CALL.search(source)):
                collective = call[1]
            return Position(Path(script).name, line, source, collective)
        if not match["file"].startswith(_OBSERVERS):
            inner.append((match["file"], match["function"]))
    return None
