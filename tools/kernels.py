"""Kernels that talk through files: a TCP port picked for one can be taken before it starts."""

from pathlib import Path
from uuid import uuid4

from jupyter_client import AsyncKernelManager, KernelManager
from jupyter_core.paths import jupyter_runtime_dir
from traitlets import CaselessStrEnum, default


class LocalKernelManager(KernelManager):
    """Talks to its kernel through files, to which nobody else on the machine listens."""

    transport = CaselessStrEnum(["tcp", "ipc"], default_value="ipc")

    @default("ip")
    def _sockets_beside_other_runtime_files(self) -> str:
        folder = Path(jupyter_runtime_dir())
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder / f"kernel-{uuid4().hex[:8]}")


class AsyncLocalKernelManager(LocalKernelManager, AsyncKernelManager):
    """The same, as papermill starts it."""
