"""The kernels in which the notebooks run."""

import socket

from jupyter_client.connect import LocalPortCache
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, RunningKernel


def test_a_kernel_starts_where_the_ports_that_were_free_are_taken(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(LocalPortCache, "find_available_port", lambda *_: port)
        kernel = RunningKernel(CURRENT_ENV_KERNEL_NAME)
        try:
            assert kernel.is_alive()
        finally:
            kernel.stop()
