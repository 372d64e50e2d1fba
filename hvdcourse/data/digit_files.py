"""Image files to read: the digits, enlarged and written into class-named folders."""

from pathlib import Path

from PIL import Image

from hvdcourse.data.image_folder import ImageFolder, find_images
from hvdcourse.data.sets import load


def write_digits(folder: str | Path, train: int, test: int, pixels: int) -> ImageFolder:
    """Write digits as gray PNG files ``train/<digit>/<number>.png`` and ``test/…``.

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
            # Hardly compressed: that is quick.
            large = Image.fromarray(image[..., 0]).resize(
                (pixels, pixels), Image.Resampling.BICUBIC
            )
            large.save(path, compress_level=1)
    return find_images(folder)
