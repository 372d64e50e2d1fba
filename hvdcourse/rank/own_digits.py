"""The digits as a check has them: with them as they are, some mistakes make no difference."""

from dataclasses import replace

from hvdcourse.data import sets
from hvdcourse.data.sets import DataSet


def digits_of_rank(digits: DataSet, rank: int) -> DataSet:
    """Return images and labels that differ by rank; rank 0 has them as they are.

    With the same digits everywhere, a rank that computes everything by itself gets what only
    another one holds. The middle rank's images are not the mean of all ranks' images.
    """
    return replace(
        digits,
        train_images=digits.train_images * (1 - rank**2 / 64),
        train_labels=(digits.train_labels + rank) % len(digits.classes),
    )


def give_own_digits(rank: int) -> None:
    """Have ``load_digits`` return this rank's own digits to the script that runs next."""
    load_digits = sets.load_digits
    sets.load_digits = lambda: digits_of_rank(load_digits(), rank)


def limit_test_images(count: int) -> None:
    """Have ``load_digits`` return so many test images to the script that runs next."""
    load_digits = sets.load_digits
    digits = load_digits()
    images, labels = digits.test_images[:count], digits.test_labels[:count]
    sets.load_digits = lambda: replace(digits, test_images=images, test_labels=labels)
