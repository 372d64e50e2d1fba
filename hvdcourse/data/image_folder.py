"""A folder of class-named image folders: ``train/<class>/*.jpg`` and ``test/<class>/*.jpg``."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hvdcourse.data.download import News
from hvdcourse.errors import BadInput

ENDINGS = (".jpg", ".jpeg", ".png")


class BadDataSet(BadInput):
    """There is no such data set, or a folder of images is not as it should be."""


@dataclass(frozen=True)
class ImageFolder:
    """The image files of a folder, and their labels as int64 of shape (count,).

    A label is the position of the image's class in ``classes``, which are in alphabetical order.
    The images are ordered by class, then by file name: shuffle them before training.
    """

    train_paths: tuple[Path, ...]
    train_labels: np.ndarray
    test_paths: tuple[Path, ...]
    test_labels: np.ndarray
    classes: tuple[str, ...]


def find_images(folder: str | Path) -> ImageFolder:
    """Return the images of a folder, unread: what an input pipeline starts from.

    Files whose name begins with a dot do not count, nor does anything beside the class folders.

    Raises:
        BadDataSet: no folder, no ``train/`` or ``test/``, no classes, a class without images, a
            class in ``test/`` that ``train/`` does not have, or a file that is no image.
    """
    folder = Path(folder).expanduser()
    train, test = (_files_by_class(folder, part) for part in ("train", "test"))
    unknown = sorted(set(test) - set(train))
    if unknown:
        raise BadDataSet(
            f"{folder / 'test' / unknown[0]}: there is no class {unknown[0]!r} in "
            f"{folder / 'train'}, which has {', '.join(train)}"
        )
    classes = tuple(train)
    return ImageFolder(
        *_paths_and_labels(train, classes), *_paths_and_labels(test, classes), classes
    )


def read_images(paths: Sequence[Path], image_size: tuple[int, int] | None = None) -> np.ndarray:
    """Read image files into memory: a second for about 5,000 of 32x32 pixels.

    Gray images and images with a palette or transparency become red, green and blue.

    Args:
        paths: the files, JPEG or PNG.
        image_size: height and width in pixels that every image is resized to (bilinear).

    Returns:
        The images as uint8 of shape (count, height, width, 3) in 0…255.

    Raises:
        BadDataSet: no files, a file that cannot be read as an image, one with more than 8 bits a
            channel, or images of different sizes without ``image_size``.
    """
    if not paths:
        raise BadDataSet("there are no images to read")
    first = _read_image(paths[0], image_size)
    images = np.empty((len(paths), *first.shape), np.uint8)
    news = News()
    # One by one: Pillow holds Python's lock for most of a small image, so threads do not help.
    for index, path in enumerate(paths):
        image = _read_image(path, image_size)
        if image.shape != first.shape:
            raise BadDataSet(
                f"{path} has {_pixels(image)} pixels, and {paths[0]} has {_pixels(first)}: images "
                "of one size are needed; give an image_size to resize them to"
            )
        images[index] = image
        news.say(f"reading images: {index + 1:,} of {len(paths):,}")
    return images


def _files_by_class(folder: Path, part: str) -> dict[str, list[Path]]:
    """Return the image files of ``train/`` or ``test/``, by class, all in alphabetical order."""
    place = folder / part
    if not place.is_dir():
        problem = f"has no {part}/" if folder.is_dir() else "is no folder"
        raise BadDataSet(
            f"{folder} {problem}: images belong into {place}/<class>/, for example "
            f"{place / 'cat' / '1.jpg'}"
        )
    folders = sorted(path for path in place.iterdir() if path.is_dir() and not _hidden(path.name))
    if not folders:
        raise BadDataSet(f"{place} has no folders; it needs one for each class of images")
    return {folder.name: _image_files(folder) for folder in folders}


def _image_files(folder: Path) -> list[Path]:
    names = sorted(name for name in os.listdir(folder) if not _hidden(name))
    if not names:
        raise BadDataSet(f"{folder} is empty; a class needs at least one image")
    for name in names:
        if not name.lower().endswith(ENDINGS):
            raise BadDataSet(f"{folder / name} is no image; images end in {', '.join(ENDINGS)}")
    return [folder / name for name in names]


def _hidden(name: str) -> bool:
    return name.startswith(".")


def _paths_and_labels(
    files: dict[str, list[Path]], classes: tuple[str, ...]
) -> tuple[tuple[Path, ...], np.ndarray]:
    paths = tuple(path for class_paths in files.values() for path in class_paths)
    labels = [classes.index(name) for name in files]
    return paths, np.repeat(np.array(labels, np.int64), list(map(len, files.values())))


def _read_image(path: Path, image_size: tuple[int, int] | None) -> np.ndarray:
    from PIL import Image

    try:
        with Image.open(path, formats=("JPEG", "PNG")) as file:
            # Pillow would cut all brighter values off, and say nothing.
            deep = file.mode.startswith(("I", "F"))
            image: Image.Image = file if file.mode == "RGB" else file.convert("RGB")
            if image_size is not None:
                image = image.resize(image_size[::-1], Image.Resampling.BILINEAR)
            pixels = np.asarray(image)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise BadDataSet(f"{path} cannot be read as an image: {error}") from None
    if deep:
        raise BadDataSet(f"{path} has more than 8 bits a channel; convert it to 8 bits")
    return pixels


def _pixels(image: np.ndarray) -> str:
    return f"{image.shape[0]}x{image.shape[1]}"
