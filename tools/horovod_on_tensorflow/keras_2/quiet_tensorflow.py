"""Leaves out what importing TensorFlow logs, whatever TF_CPP_MIN_LOG_LEVEL says, and means nothing.

That it uses oneDNN, and, where its build for GPUs finds none, three "errors". All else that the
import writes to standard error appears at its end. Python loads this when it starts, by the
``.pth`` file beside it: https://docs.python.org/3/library/site.html
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
    """Finds TensorFlow as Python would, and has it executed quietly."""

    def find_spec(self, name, path=None, target=None):
        """Return TensorFlow's spec, and nobody else's."""
        if name != "tensorflow":
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec and spec.loader:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: quietly(execute, module)
        return spec


def quietly(execute, module):
    """Call ``execute(module)``; then write what it wrote to standard error, less the noise."""
    from tempfile import TemporaryFile

    try:
        standard_error = os.dup(2)
    except OSError:  # It is closed: nobody reads it.
        return execute(module)
    with TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        try:
            execute(module)
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)
            written.seek(0)
            os.write(2, b"".join(line for line in written if not MEANS_NOTHING.search(line)))


sys.meta_path.insert(0, Finder())
