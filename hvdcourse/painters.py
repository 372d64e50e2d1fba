"""Eleven painters who never lived, and their pictures: an image folder that needs no network."""

import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from hvdcourse.download import (
    NEWS_SECONDS,
    TOTAL_SECONDS,
    data_folders,
    make_folder,
    only_process,
    say,
)
from hvdcourse.painting import Style, paint

# The pictures' edition: a change to how they are painted needs a new one.
EDITION = "painters-1"
SOURCE = "pictures drawn by this course's own code, CC BY 4.0"
_JPEG_QUALITY = 88

_ANY = ("horizon", "figure", "clouds", "bands")
_NEAR, _OPPOSITE, _TRIAD = (0.0, 0.04, -0.05), (0.0, 0.5), (0.0, 0.33, 0.66)

# How many pictures to train and to test on each painter left, and the painter's style.
PAINTERS: dict[str, tuple[int, int, Style]] = {
    "ambrel_tosk": (
        421, 105,
        Style(_ANY[1:], 0.12, _OPPOSITE, 0.7, 0.5, "swirl", "dash", 0.18, 0.035, 280, "smooth"),
    ),
    "birne_valko": (
        110, 28,
        Style(_ANY, 0.5, _OPPOSITE, 0.3, 0.7, "swirl", "arc", 0.18, 0.035, 240, "smooth"),
    ),
    "cassim_orrel": (
        600, 149,
        Style(_ANY[:2], 0.58, _NEAR, 0.75, 0.45, "flow", "dash", 0.26, 0.04, 240, "smooth"),
    ),
    "dunja_feltz": (
        208, 51,
        Style(_ANY, 0.1, _TRIAD, 0.45, 0.3, "crossed", "dash", 0.22, 0.03, 260, "weave"),
    ),
    "elvar_quiss": (
        353, 88,
        Style(_ANY[:2], 0.95, _OPPOSITE, 0.85, 0.6, "any", "dot", 0.06, 0.03, 380, "smooth"),
    ),
    "fiora_mess": (
        146, 36,
        Style(_ANY[1:], 0.8, _NEAR, 0.6, 0.65, "straight", "dash", 0.24, 0.02, 280, "cracks"),
    ),
    "gorm_hadlik": (
        503, 125,
        Style(_ANY[:3], 0.05, _NEAR, 0.45, 0.5, "flow", "arc", 0.18, 0.035, 260, "weave"),
    ),
    "ilse_varnot": (
        122, 30,
        Style(_ANY, 0.85, _TRIAD, 0.75, 0.45, "any", "wedge", 0.16, 0.12, 160, "cracks"),
    ),
    "jorun_pesk": (
        296, 73,
        Style(_ANY[1:], 0.3, _TRIAD, 0.3, 0.6, "any", "ring", 0.12, 0.018, 190, "grain"),
    ),
    "lunel_basko": (
        248, 62,
        Style(_ANY, 0.33, _NEAR, 0.25, 0.35, "straight", "block", 0.2, 0.14, 110, "smooth"),
    ),
    "mirko_stauve": (
        174, 43,
        Style(_ANY[:3], 0.75, _OPPOSITE, 0.5, 0.3, "rays", "wedge", 0.28, 0.1, 120, "smooth"),
    ),
}  # fmt: skip


def image_folder(data: str | Path = "painters") -> Path:
    """Return the folder of images that ``--data`` names: the painters', or the learner's own.

    The painters' 3,181 pictures to train on and 790 to test on, JPEG files of 64x64 pixels, are
    drawn once per machine, in about 15 s: the first process that asks draws them, the others wait.

    Raises:
        OSError: there is no folder that can be written to, or no space; nothing is left behind.
    """
    if str(data) != "painters":
        return Path(data).expanduser()
    folders = [folder / EDITION for folder in data_folders()]
    path = next((folder for folder in folders if folder.exists()), folders[-1])
    if not path.exists():
        make_folder(path.parent)
        with only_process(path, time.monotonic() + TOTAL_SECONDS):
            # Whoever held the lock before may have drawn them.
            if not path.exists():
                draw_once(path)
    return path


def draw_once(path: Path) -> None:
    """Draw all pictures into a folder beside ``path``, then give it that name: whole or absent."""
    say(f"drawing the painters' pictures into {path}, once on this machine: about 15 s")
    part = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        draw_pictures(part)
        part.chmod(0o755)
        os.replace(part, path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def draw_pictures(folder: Path, share: float = 1.0) -> None:
    """Draw ``train/<painter>/<number>.jpg`` and ``test/…``, always the same.

    Args:
        folder: where to write.
        share: which part of each painter's pictures, at least one of each.
    """
    next_news = time.monotonic() + NEWS_SECONDS
    for number, (name, (train, test, style)) in enumerate(PAINTERS.items()):
        for part, count in enumerate((train, test)):
            place = folder / ("train", "test")[part] / name
            place.mkdir(parents=True)
            for picture in range(max(1, round(share * count))):
                image = paint(style, np.random.default_rng([number, part, picture]))
                image.save(place / f"{picture:04d}.jpg", quality=_JPEG_QUALITY)
        if time.monotonic() >= next_news:
            say(f"drawing pictures: {number + 1} of {len(PAINTERS)} painters")
            next_news = time.monotonic() + NEWS_SECONDS
