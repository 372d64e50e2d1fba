"""The data sets of the course: ``load("digits")``, a published one, or a folder of images."""

import difflib
from dataclasses import dataclass, replace
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

from hvdcourse.data.image_folder import BadDataSet, find_images, read_images
from hvdcourse.data.painters import SOURCE as PAINTERS_SOURCE
from hvdcourse.data.painters import image_folder
from hvdcourse.data.published import PUBLISHED

NAMES = ("digits", "painters", *PUBLISHED)
DIGITS_TEST_IMAGES = 360


@dataclass(frozen=True)
class DataSet:
    """Images as float32 of shape (count, height, width, channels) in 0…1, labels as int64.

    Labels have shape (count,) and are positions in ``classes``. ``source`` says whom to cite, and
    the license. Where uint8 was asked for, the images are that, in 0…255.
    """

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    classes: tuple[str, ...]
    source: str


def load(
    data: str | Path = "digits",
    *,
    dtype: str = "float32",
    image_size: tuple[int, int] | None = None,
) -> DataSet:
    """Return a data set, by its name or by its folder: what ``--data`` of every script takes.

    ==============  ===============  =======  ==========  ========
    name            train and test   pixels   channels    download
    ==============  ===============  =======  ==========  ========
    digits          1,437 and 360    8x8      1           none
    painters        3,181 and 790    64x64    3           none
    mnist           60,000, 10,000   28x28    1           11 MB
    fashion_mnist   60,000, 10,000   28x28    1           31 MB
    cifar10         50,000, 10,000   32x32    3           170 MB
    svhn            73,257, 26,032   32x32    3           246 MB
    a folder        its own          its own  3           none
    ==============  ===============  =======  ==========  ========

    A file is fetched once per machine: see ``hvdcourse.data.download``. The painters' pictures are
    drawn once per machine: see ``hvdcourse.data.painters``. A folder holds ``train/<class>/*.jpg``
    and ``test/<class>/*.jpg``, or ``.png``: see ``hvdcourse.data.image_folder``.

    Args:
        data: one of the names above, or the path of a folder.
        dtype: ``"float32"`` for images in 0…1; ``"uint8"`` for images in 0…255, which take a
            quarter of the memory (cifar10: 0.18 GB a rank in place of 0.74) and are left to the
            input pipeline to scale, for example with ``tf.image.convert_image_dtype``.
        image_size: height and width to resize a folder's images to, in pixels.

    Raises:
        BadDataSet: neither a name nor a folder, a folder that is not as it should be, or an
            argument that does not fit.
        DataUnavailable: a file that cannot be fetched; the message says what to do. No other data
            set takes its place.
    """
    if dtype not in ("float32", "uint8"):
        raise BadDataSet(f"dtype must be 'float32' or 'uint8'; got {dtype!r}")
    if data in NAMES and image_size is not None:
        raise BadDataSet(f"image_size is for folders of images; {data} comes in one size")
    if data == "digits":
        return _as_dtype(load_digits(), dtype)
    if data in PUBLISHED:
        published = PUBLISHED[data]
        whole = DataSet(*published.arrays(), published.classes, published.source)
    elif data == "painters":
        whole = replace(load_image_folder(image_folder()), source=PAINTERS_SOURCE)
    else:
        whole = load_image_folder(data, image_size)
    return _as_dtype(whole, dtype)


def load_digits() -> DataSet:
    """Return 1,797 handwritten digits of 8x8 pixels, 1,437 to train on and 360 to test on.

    They come with scikit-learn, so no network is needed, and the split is always the same.
    Source: Alpaydin and Kaynak, 1998, doi:10.24432/C50P49, CC BY 4.0.
    """
    # Read from the file itself: to import scikit-learn would cost every rank more than a second.
    path = distribution("scikit-learn").locate_file("sklearn/datasets/data/digits.csv.gz")
    table = np.loadtxt(str(path), delimiter=",", dtype=np.float32)
    table = np.random.default_rng(0).permutation(table)
    images = (table[:, :64] / 16).reshape(-1, 8, 8, 1)
    labels = table[:, 64].astype(np.int64)
    cut = len(table) - DIGITS_TEST_IMAGES
    return DataSet(
        images[:cut],
        labels[:cut],
        images[cut:],
        labels[cut:],
        classes=tuple(str(digit) for digit in range(10)),
        source="Optical Recognition of Handwritten Digits, doi:10.24432/C50P49, CC BY 4.0",
    )


def load_image_folder(folder: str | Path, image_size: tuple[int, int] | None = None) -> DataSet:
    """Read a folder of class-named image folders into memory, as uint8 in 0…255.

    Raises:
        BadDataSet: no such folder, or one that is not as it should be.
    """
    path = Path(folder).expanduser()
    if not path.exists():
        close = difflib.get_close_matches(str(folder), NAMES, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise BadDataSet(
            f"{str(folder)!r} is neither a data set ({', '.join(NAMES)}) nor a folder{hint}"
        )
    images = find_images(path)
    # Train and test images are read together, so that they are of one size.
    pixels = read_images(images.train_paths + images.test_paths, image_size)
    cut = len(images.train_paths)
    return DataSet(
        pixels[:cut],
        images.train_labels,
        pixels[cut:],
        images.test_labels,
        images.classes,
        source=f"the images in {folder}; their owner knows their license",
    )


def _as_dtype(data: DataSet, dtype: str) -> DataSet:
    train, test = (images_as(images, dtype) for images in (data.train_images, data.test_images))
    return replace(data, train_images=train, test_images=test)


def images_as(images: np.ndarray, dtype: str) -> np.ndarray:
    """Return images as float32 in 0…1, or as uint8 in 0…255; the array itself if it is that."""
    if images.dtype == dtype:
        return images
    if dtype == "uint8":
        return np.rint(images * 255).astype(np.uint8)
    scaled = images.astype(np.float32)
    scaled /= 255
    return scaled
