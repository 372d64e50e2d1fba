"""Image files to read: the digits, enlarged and written into class-named folders."""

from pathlib import Path

import numpy as np

from hvdcourse.data.image_folder import ImageFolder, find_images
from hvdcourse.data.sets import load


def write_digits(folder: str | Path, train: int, test: int, pixels: int) -> ImageFolder:
    """Write digits as grey PNG files ``train/<digit>/<number>.png`` and ``test/…``.

    They are enlarged, so that reading and decoding a file costs about what it costs with photos.

    Args:
        folder: where to write.
        train: how many of the training images.
        test: how many of the test images.
        pixels: width and height of each file's image.

    Returns:
        The files, as ``hvdcourse.data.image_folder.find_images`` finds them: ordered by class.
    """
    digits = load("digits", dtype="uint8")
    folder = Path(folder)
    parts = (
        ("train", digits.train_images[:train], digits.train_labels),
        ("test", digits.test_images[:test], digits.test_labels),
    )
    for part, images, labels in parts:
        for number, image in enumerate(images):
            path = folder / part / digits.classes[labels[number]] / f"{number:04d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_enlarged(path, image[..., 0], pixels)
    return find_images(folder)


def write_enlarged(path: Path, image: np.ndarray, pixels: int) -> None:
    """Write a grey image, uint8 of shape (height, width), as a PNG file of ``pixels`` squared."""
    from PIL import Image

    large = Image.fromarray(image).resize((pixels, pixels), Image.Resampling.BICUBIC)
    large.save(path, compress_level=1)
