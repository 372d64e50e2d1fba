"""Measures how well a linear classifier tells the painters apart: logistic regression on pixels."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from hvdcourse.data.sets import load


def rows(images, side):
    """Return each image as one row of numbers, made smaller to side x side means."""
    cell = images.shape[1] // side
    means = images.reshape(len(images), side, cell, side, cell, 3).mean(axis=(2, 4))
    return means.reshape(len(images), -1) - 0.5


def main():
    data = load("painters")
    print(f"the most frequent painter: {np.bincount(data.test_labels).max() / 790:.3f}")
    for side, strengths in ((16, (1e-4, 1e-3, 1e-2, 1e-1)), (64, (1e-4, 1e-3, 1e-2))):
        train, test = (rows(images, side) for images in (data.train_images, data.test_images))
        for strength in strengths:
            model = LogisticRegression(C=strength, max_iter=200).fit(train, data.train_labels)
            accuracies = [
                model.score(*pair)
                for pair in ((train, data.train_labels), (test, data.test_labels))
            ]
            print(
                f"{side}x{side} means, C={strength:g}: "
                f"train {accuracies[0]:.3f}, test {accuracies[1]:.3f}"
            )


if __name__ == "__main__":
    main()
