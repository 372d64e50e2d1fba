"""The digits as a check has them: with them as they are, some mistakes make no difference."""

from dataclasses import replace

from hvdcourse.data import sets
from hvdcourse.data.sets import DataSet


def digits_of_rank(digits: DataSet, rank: int) -> DataSet:
    """Return images that differ by rank; rank 0 has them as they are.

    With the same digits everywhere, a rank that computes everything by itself gets what only
    another one holds.
    """
    return replace(digits, train_images=digits.train_images * (1 - rank / 16))


def give_own_digits(rank: int) -> None:
    """Have ``load_digits`` return this rank's own digits to the script that runs next."""
    load_digits = sets.load_digits
    sets.load_digits = lambda: digits_of_rank(load_digits(), rank)


def with_test_images(digits: DataSet, count: int) -> DataSet:
    """Return the digits with so many test images: 2, 3, 4, 5 and 6 ranks share all 360 evenly."""
    return replace(
        digits, test_images=digits.test_images[:count], test_labels=digits.test_labels[:count]
    )


def limit_test_images(count: int) -> None:
    """Have ``load_digits`` return so many test images to the script that runs next."""
    load_digits = sets.load_digits
    sets.load_digits = lambda: with_test_images(load_digits(), count)
