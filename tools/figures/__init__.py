"""The figures, drawn by code: ``python -m figures`` writes ``images/``."""

from collections.abc import Callable
from pathlib import Path

from PIL import Image

from figures import (
    baseline,
    collectives,
    convergence,
    hosts,
    painters,
    parallelism,
    records,
    ring,
    rooms,
    seven_steps,
    steps,
)
from figures.drawing import Canvas
from hvdcourse.paths import IMAGES

FIGURES: dict[str, Callable[[], Canvas]] = {
    "00_hours_to_minutes": records.draw_hours_to_minutes,
    "01_places": hosts.draw_places,
    "01_allreduce": collectives.draw_allreduce,
    "01_allgather": collectives.draw_allgather,
    "01_broadcast": collectives.draw_broadcast,
    "01_alltoall": collectives.draw_alltoall,
    "01_reducescatter": collectives.draw_reducescatter,
    "01_barrier": collectives.draw_barrier,
    "01_data_and_model_parallel": parallelism.draw_data_and_model_parallel,
    "01_synchronous_asynchronous": parallelism.draw_synchronous_asynchronous,
    "01_parameter_server_and_ring": ring.draw_parameter_server_and_ring,
    "01_ring_allreduce_steps": ring.draw_ring_allreduce_steps,
    "02_input_pipeline": baseline.draw_input_pipeline,
    "03_data_parallel_step": steps.draw_data_parallel_step,
    "03_wrapped_optimizer": steps.draw_wrapped_optimizer,
    "03_seven_steps": seven_steps.draw_seven_steps,
    "03_launch": hosts.draw_launch,
    "04_sharp_and_flat": convergence.draw_sharp_and_flat,
    "04_warmup": convergence.draw_warmup,
    "04_trust_ratio": convergence.draw_trust_ratio,
    "06_placement": hosts.draw_placement,
    "rooms": rooms.draw_rooms,
}

PICTURES: dict[str, Callable[[], Image.Image]] = {"07_painters": painters.draw_painters}


def write_figures(folder: Path = IMAGES) -> list[Path]:
    """Draw every figure, write it as SVG or PNG into the folder, and return the files.

    The same versions of matplotlib, Pillow and this package give the same bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, draw in FIGURES.items():
        files.append(folder / f"{name}.svg")
        draw().save(files[-1])
    for name, draw_picture in PICTURES.items():
        files.append(folder / f"{name}.png")
        # Without a limit of colors the noise in the pictures would make the file twice as large.
        draw_picture().quantize(256).save(files[-1], optimize=True)
    return files
