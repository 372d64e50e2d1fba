"""Eleven painters who never lived, and their pictures: an image folder that needs no network."""

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from hvdcourse.data import painting
from hvdcourse.data.download import News, data_folders, only_process, say
from hvdcourse.data.painting import Painter, paint

# The pictures' edition: a change to how they are painted needs a new one.
EDITION = "painters-1"
SOURCE = "pictures drawn by this course's own code, CC BY 4.0"
_JPEG_QUALITY = 88

_ANY = (
    painting.compose_horizon,
    painting.compose_figure,
    painting.compose_clouds,
    painting.compose_bands,
)
_NEAR, _OPPOSITE, _TRIAD = (0.0, 0.04, -0.05), (0.0, 0.5), (0.0, 0.33, 0.66)

PAINTERS = {
    "ambrel_tosk": Painter(
        train=421, test=105, compositions=_ANY[1:], home=0.12, hues=_OPPOSITE, saturation=0.7,
        contrast=0.5, field=painting.field_swirl, stroke="dash", length=0.18, width=0.035,
        count=280, texture=painting.texture_smooth,
    ),
    "birne_valko": Painter(
        train=110, test=28, compositions=_ANY, home=0.5, hues=_OPPOSITE, saturation=0.3,
        contrast=0.7, field=painting.field_swirl, stroke="arc", length=0.18, width=0.035,
        count=240, texture=painting.texture_smooth,
    ),
    "cassim_orrel": Painter(
        train=600, test=149, compositions=_ANY[:2], home=0.58, hues=_NEAR, saturation=0.75,
        contrast=0.45, field=painting.field_flow, stroke="dash", length=0.26, width=0.04,
        count=240, texture=painting.texture_smooth,
    ),
    "dunja_feltz": Painter(
        train=208, test=51, compositions=_ANY, home=0.1, hues=_TRIAD, saturation=0.45,
        contrast=0.3, field=painting.field_crossed, stroke="dash", length=0.22, width=0.03,
        count=260, texture=painting.texture_weave,
    ),
    "elvar_quiss": Painter(
        train=353, test=88, compositions=_ANY[:2], home=0.95, hues=_OPPOSITE, saturation=0.85,
        contrast=0.6, field=painting.field_any, stroke="dot", length=0.06, width=0.03,
        count=380, texture=painting.texture_smooth,
    ),
    "fiora_mess": Painter(
        train=146, test=36, compositions=_ANY[1:], home=0.8, hues=_NEAR, saturation=0.6,
        contrast=0.65, field=painting.field_straight, stroke="dash", length=0.24, width=0.02,
        count=280, texture=painting.texture_cracks,
    ),
    "gorm_hadlik": Painter(
        train=503, test=125, compositions=_ANY[:3], home=0.05, hues=_NEAR, saturation=0.45,
        contrast=0.5, field=painting.field_flow, stroke="arc", length=0.18, width=0.035,
        count=260, texture=painting.texture_weave,
    ),
    "ilse_varnot": Painter(
        train=122, test=30, compositions=_ANY, home=0.85, hues=_TRIAD, saturation=0.75,
        contrast=0.45, field=painting.field_any, stroke="wedge", length=0.16, width=0.12,
        count=160, texture=painting.texture_cracks,
    ),
    "jorun_pesk": Painter(
        train=296, test=73, compositions=_ANY[1:], home=0.3, hues=_TRIAD, saturation=0.3,
        contrast=0.6, field=painting.field_any, stroke="ring", length=0.12, width=0.018,
        count=190, texture=painting.texture_grain,
    ),
    "lunel_basko": Painter(
        train=248, test=62, compositions=_ANY, home=0.33, hues=_NEAR, saturation=0.25,
        contrast=0.35, field=painting.field_straight, stroke="block", length=0.2, width=0.14,
        count=110, texture=painting.texture_smooth,
    ),
    "mirko_stauve": Painter(
        train=174, test=43, compositions=_ANY[:3], home=0.75, hues=_OPPOSITE, saturation=0.5,
        contrast=0.3, field=painting.field_rays, stroke="wedge", length=0.28, width=0.1,
        count=120, texture=painting.texture_smooth,
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
        with only_process(path.with_name(f".{EDITION}.lock")):
            # Another process, which held the lock before, may have drawn them.
            if not path.exists():
                draw_once(path)
    return path


def draw_once(path: Path) -> None:
    """Draw all pictures into a folder next to ``path``, then give it that name: whole or absent."""
    say(f"drawing the painters' pictures into {path}, once on this machine: about 15 s")
    for left_by_a_kill in path.parent.glob(f".{path.name}-*"):
        shutil.rmtree(left_by_a_kill, ignore_errors=True)
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
    news = News()
    for number, (name, painter) in enumerate(PAINTERS.items()):
        for part, count in enumerate((painter.train, painter.test)):
            place = folder / ("train", "test")[part] / name
            place.mkdir(parents=True)
            for picture in range(max(1, round(share * count))):
                image = paint(painter, np.random.default_rng([number, part, picture]))
                image.save(place / f"{picture:04d}.jpg", quality=_JPEG_QUALITY)
        news.say(f"drawing pictures: {number + 1} of {len(PAINTERS)} painters")
