"""The data sets of the course. This far: the digits that come with scikit-learn."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class DataSet:
    """Images as float32 of shape (count, height, width, channels) in 0…1, labels as int64."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    classes: tuple[str, ...]
    source: str


def load_digits() -> DataSet:
    """Return 1,797 handwritten digits of 8x8 pixels, 1,437 to train on and 360 to test on.

    They come with scikit-learn, so no network is needed, and the split is always the same.
    Source: Alpaydin and Kaynak, 1998, doi:10.24432/C50P49, CC BY 4.0.
    """
    from sklearn.datasets import load_digits as sklearn_digits
    from sklearn.model_selection import train_test_split

    digits = sklearn_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., np.newaxis]
    labels = digits.target.astype(np.int64)
    parts = train_test_split(images, labels, test_size=360, random_state=0, stratify=labels)
    train_images, test_images, train_labels, test_labels = parts
    return DataSet(
        train_images,
        train_labels,
        test_images,
        test_labels,
        classes=tuple(str(name) for name in digits.target_names),
        source="Optical Recognition of Handwritten Digits, doi:10.24432/C50P49, CC BY 4.0",
    )
