"""What the tests of data sets share: random images, and what every set must be."""

import numpy as np

RANDOM = np.random.default_rng(0)


def random_images(*shape):
    return RANDOM.integers(0, 256, shape, np.uint8)


def assert_consistent(found, dtype, largest):
    for images, labels in (
        (found.train_images, found.train_labels),
        (found.test_images, found.test_labels),
    ):
        assert images.dtype == dtype
        assert labels.dtype == np.int64
        assert images.ndim == 4
        assert labels.shape == images.shape[:1]
        assert images.min() >= 0
        assert images.max() <= largest
        assert 0 <= labels.min() <= labels.max() < len(found.classes)
    assert found.train_images.shape[1:] == found.test_images.shape[1:]
    assert found.source
