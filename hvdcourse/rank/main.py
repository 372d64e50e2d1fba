"""What every rank runs: ``python -m hvdcourse.rank.main SCRIPT ARGUMENTS``.

It gives the rank its cores, runs the script as ``python SCRIPT`` would, and leaves a record of
how the rank began and ended in the run's folder.
"""

import faulthandler
import os
import re
import runpy
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import TracebackType

from hvdcourse.machine.environment import end_with_parent
from hvdcourse.rank.place import Place, take_share_of_cores
from hvdcourse.rank.run_folder import RunFolder
from hvdcourse.rank.variables import OBSERVE_VARIABLE

# TensorFlow's errors tell of some fifty calls that led to the operation, without their code. The
# traceback has those that are the script's.
_WHERE_A_GRAPH_WAS_MADE = re.compile(r'^ +File ".*", line \d+, in .*\n\n?', re.MULTILINE)


def die_with_parent() -> None:
    """Ask the kernel to end this process when the one that started it is gone."""
    end_with_parent(signal.SIGKILL)
    if os.getppid() == 1:
        os._exit(1)


def print_into_pipes(folder: RunFolder, rank: int) -> None:
    """Send what this process prints into the pipes that the supervisor reads, if it made any."""
    for stream in ("stdout", "stderr"):
        path = folder.pipe(rank, stream)
        if path.exists():
            pipe = os.open(path, os.O_WRONLY)
            os.dup2(pipe, getattr(sys, stream).fileno())
            os.close(pipe)


def from_the_script(error: BaseException, script: str) -> TracebackType | None:
    """Return the error's traceback from the script's own first frame on."""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename != script:
        step = step.tb_next
    return step or error.__traceback__


def run_script(script: str) -> tuple[int, dict[str, str] | None]:
    """Run the script as ``__main__``; return its exit status and, where it raised, the error."""
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as exit_request:
        code = exit_request.code
        if code is None or isinstance(code, int):
            return code or 0, None
        print(code, file=sys.stderr)
        return 1, None
    except BaseException as error:
        error.__traceback__ = from_the_script(error, script)
        message = _WHERE_A_GRAPH_WAS_MADE.sub("", str(error))
        text = "".join(traceback.format_exception(error)).replace(str(error), message)
        print(text, file=sys.stderr, end="", flush=True)
        return 1, {"type": type(error).__name__, "message": message, "traceback": text}
    return 0, None


def main() -> None:
    """Run the script named on the command line as one rank of a run."""
    script, arguments = os.path.abspath(sys.argv[1]), sys.argv[2:]
    place, folder = Place.from_environment(), RunFolder.of_this_process()
    if folder is None:
        sys.exit(
            "This process is started by `hvdcourse run`; to start a script alone: python SCRIPT"
        )
    die_with_parent()
    print_into_pipes(folder, place.rank)
    stack_file = folder.stack_file(place.rank).open("w")
    faulthandler.register(signal.SIGUSR1, file=stack_file, all_threads=False)
    cores = take_share_of_cores()
    folder.write_state(place.rank, "started", pid=os.getpid(), cores=cores)
    tempfile.tempdir = str(folder.temporary_files())
    finish_observing = None
    if os.environ.get(OBSERVE_VARIABLE):
        from hvdcourse.rank.observe import observe

        finish_observing = observe(folder, place.rank, os.environ[OBSERVE_VARIABLE])
    sys.argv = [script, *(argument.replace("{rank}", str(place.rank)) for argument in arguments)]
    sys.path[0] = str(Path(script).parent)
    status, error = run_script(script)
    if status == 0 and finish_observing:
        finish_observing()
    sys.stdout.flush()
    folder.write_state(place.rank, "ended", status=status, error=error, time=time.time())
    if status != 0:
        # The others learn of it when this process ends; until then they are where they wait.
        folder.wait_for_stacks(range(place.size))
    sys.exit(status)


if __name__ == "__main__":
    main()
