"""Has TensorFlow imported in four fifths of the time, and without lines that mean nothing.

- Every object of the import stays. Python's garbage collector would look through them again and
  again, during the import and ever after: https://docs.python.org/3/library/gc.html#gc.freeze
- It logs, whatever TF_CPP_MIN_LOG_LEVEL says, that it uses oneDNN, and, where its build for GPUs
  finds none, three "errors". All else that it writes to standard error appears at its end.

Python loads this when it starts, by the ``.pth`` file beside it:
https://docs.python.org/3/library/site.html
"""

import os
import re
import sys

MEANS_NOTHING = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\)"
    rb"|oneDNN custom operations are on"
    rb"|Unable to register cu(DNN|FFT|BLAS) factory: Attempting to register"
)


class Finder:
    """Finds one module as Python would, and has it executed as it is told."""

    def __init__(self, name, execute):
        """``execute(as_python, module)`` does what ``as_python(module)`` would do alone."""
        self.name, self.execute = name, execute

    def find_spec(self, name, path=None, target=None):
        """Return this module's spec, and that of no other."""
        if name != self.name:
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec and spec.loader:
            as_python = spec.loader.exec_module
            spec.loader.exec_module = lambda module: self.execute(as_python, module)
        return spec


def uncollected(execute, module):
    """Call ``execute(module)``, and have all that is there then left uncollected."""
    import gc

    collects = gc.isenabled()
    gc.disable()
    try:
        execute(module)
        gc.freeze()
    finally:
        if collects:
            gc.enable()


def quietly(call, *arguments):
    """Call ``call(*arguments)``; then write what it wrote to standard error, less the noise."""
    from tempfile import TemporaryFile

    try:
        standard_error = os.dup(2)
    except OSError:  # It is closed: nobody reads it.
        return call(*arguments)
    with TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        try:
            call(*arguments)
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)
            written.seek(0)
            os.write(2, b"".join(line for line in written if not MEANS_NOTHING.search(line)))


sys.meta_path.insert(0, Finder("tensorflow", lambda *execution: quietly(uncollected, *execution)))
