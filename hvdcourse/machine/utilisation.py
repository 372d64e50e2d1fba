"""How busy the processor and, where there is one, the NVIDIA GPU were for a while."""

import threading
import time

from hvdcourse.machine.gpus import NvidiaSmiError, ask_nvidia_smi

QUERY = ("--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "--id=0")
SECONDS_BETWEEN_SAMPLES = 0.2


class Utilisation:
    """Measures while its ``with`` block runs.

    ``cores`` is the processor time of this process, in all of its threads, over the time that
    passed: 1.5 means that one and a half cores were busy on average. ``gpu`` is the mean of what
    ``nvidia-smi`` said of the first GPU, from 0 to 1, or None without one. It counts the time
    in which the GPU did anything at all, not how much of it was in use.
    """

    def __init__(self) -> None:
        self.cores = 0.0
        self.gpu: float | None = None
        self.samples: list[float] = []
        self.over = threading.Event()
        self.sampler = threading.Thread(target=self.sample_gpu, daemon=True)

    def __enter__(self) -> "Utilisation":
        self.began, self.began_processor = time.perf_counter(), time.process_time()
        self.sampler.start()
        return self

    def __exit__(self, *exception: object) -> None:
        passed = time.perf_counter() - self.began
        self.cores = (time.process_time() - self.began_processor) / passed
        self.over.set()
        self.sampler.join()
        if self.samples:
            self.gpu = sum(self.samples) / len(self.samples) / 100

    def sample_gpu(self) -> None:
        """Ask nvidia-smi again and again until the block is over, or it cannot answer."""
        while not self.over.is_set():
            try:
                percent = (ask_nvidia_smi(*QUERY) or "").strip()
            except NvidiaSmiError:
                return
            if not percent.isdecimal():
                return
            self.samples.append(float(percent))
            self.over.wait(SECONDS_BETWEEN_SAMPLES)
