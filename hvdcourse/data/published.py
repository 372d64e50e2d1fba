"""The data sets that others publish: their addresses and checksums, and how their files are read.

Every reader returns train images, train labels, test images and test labels: images as uint8 of
shape (count, height, width, channels) in 0…255, labels as int64 of shape (count,).
"""

import gzip
import pickle
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hvdcourse.data.download import DataUnavailable, PublishedFile, fetch

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

_KERAS = "https://storage.googleapis.com/tensorflow/tf-keras-datasets"
_STANFORD = "http://ufldl.stanford.edu/housenumbers"
_DIGITS = tuple("0123456789")


@dataclass(frozen=True)
class PublishedSet:
    """A data set: its files, how to read them, its classes, and whom to cite."""

    files: tuple[PublishedFile, ...]
    read: Callable[[list[Path]], Arrays]
    classes: tuple[str, ...]
    source: str

    def arrays(self) -> Arrays:
        """Fetch the files that this machine does not have, and read all.

        Raises:
            DataUnavailable: a file that cannot be had; the message lists those behind it, too.
        """
        paths = []
        for file in self.files:
            try:
                paths.append(fetch(file))
            except DataUnavailable as error:
                behind = self.files[len(paths) + 1 :]
                also = "".join(f"\n  also     {other.address}" for other in behind)
                raise DataUnavailable(f"{error}{also}") from None
        return self.read(paths)


def read_npz(paths: list[Path]) -> Arrays:
    """Read ``mnist.npz``."""
    with np.load(paths[0]) as arrays:
        return _gray(*(arrays[name] for name in ("x_train", "y_train", "x_test", "y_test")))


def read_idx_files(paths: list[Path]) -> Arrays:
    """Read train images, train labels, test images and test labels from gzipped IDX files."""
    return _gray(*map(read_idx, paths))


def _gray(images: np.ndarray, labels: np.ndarray, tests: np.ndarray, answers: np.ndarray) -> Arrays:
    return images[..., None], labels.astype(np.int64), tests[..., None], answers.astype(np.int64)


def read_idx(path: Path) -> np.ndarray:
    """Return one array of bytes in LeCun's IDX format.

    It is two zero bytes, the type (8 for bytes), the number of dimensions, each dimension as four
    bytes with the highest first, then the data.
    """
    content = gzip.decompress(path.read_bytes())
    dimensions = content[3]
    shape = np.frombuffer(content, ">u4", dimensions, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape).copy()


def read_cifar(paths: list[Path]) -> Arrays:
    """Read ``cifar-10-python.tar.gz``: five batches to train on and one to test on."""
    batches = {}
    # In the archive's own order: jumping back would decompress it again from the start.
    with tarfile.open(paths[0], "r:gz") as archive:
        for member in archive:
            if "_batch" in member.name and (file := archive.extractfile(member)):
                # Pickles can run code; these are the published ones, by their checksum.
                batches[Path(member.name).name] = pickle.load(file, encoding="bytes")
    train = [batches[f"data_batch_{number}"] for number in range(1, 6)]
    return (*_cifar_part(train), *_cifar_part([batches["test_batch"]]))


def _cifar_part(batches: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    planes = np.concatenate([batch[b"data"] for batch in batches]).reshape(-1, 3, 32, 32)
    labels = np.concatenate([batch[b"labels"] for batch in batches]).astype(np.int64)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels


def read_svhn(paths: list[Path]) -> Arrays:
    """Read ``train_32x32.mat`` and ``test_32x32.mat``, where label 10 stands for the digit 0."""
    return (*_svhn_part(paths[0]), *_svhn_part(paths[1]))


def _svhn_part(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from scipy.io import loadmat

    content = loadmat(path)
    images = np.ascontiguousarray(content["X"].transpose(3, 0, 1, 2))
    return images, content["y"][:, 0].astype(np.int64) % 10


# As ``sha256sum`` prints them. Keras publishes those of Fashion-MNIST without a checksum: they are
# those of the files on the authors' page, which have the same lengths: 26,421,880, 29,515,
# 4,422,102 and 5,148 bytes.
_CHECKSUMS = """
731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1  mnist.npz
3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84  train-images-idx3-ubyte.gz
a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845  train-labels-idx1-ubyte.gz
346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073  t10k-images-idx3-ubyte.gz
67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5  t10k-labels-idx1-ubyte.gz
6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce  cifar-10-python.tar.gz
435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8  train_32x32.mat
cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b  test_32x32.mat
"""
_SHA256 = {name: sha256 for sha256, name in map(str.split, _CHECKSUMS.strip().splitlines())}


def _files(data_set: str, folder: str, *names: str) -> tuple[PublishedFile, ...]:
    return tuple(PublishedFile(data_set, f"{folder}/{name}", _SHA256[name]) for name in names)


PUBLISHED = {
    "mnist": PublishedSet(
        _files("mnist", _KERAS, "mnist.npz"),
        read_npz,
        _DIGITS,
        "LeCun, Bottou, Bengio and Haffner, 1998, doi:10.1109/5.726791, CC BY-SA 3.0",
    ),
    "fashion_mnist": PublishedSet(
        _files(
            "fashion_mnist",
            _KERAS,
            "train-images-idx3-ubyte.gz",
            "train-labels-idx1-ubyte.gz",
            "t10k-images-idx3-ubyte.gz",
            "t10k-labels-idx1-ubyte.gz",
        ),
        read_idx_files,
        (
            *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
            *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
        ),
        "Xiao, Rasul and Vollgraf, 2017, arXiv:1708.07747, MIT license",
    ),
    "cifar10": PublishedSet(
        _files("cifar10", "https://www.cs.toronto.edu/~kriz", "cifar-10-python.tar.gz"),
        read_cifar,
        ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
        "Krizhevsky, 2009, Learning Multiple Layers of Features from Tiny Images, "
        "https://www.cs.toronto.edu/~kriz/cifar.html, no license stated",
    ),
    "svhn": PublishedSet(
        _files("svhn", _STANFORD, "train_32x32.mat", "test_32x32.mat"),
        read_svhn,
        _DIGITS,
        "Netzer et al., 2011, Reading Digits in Natural Images with Unsupervised Feature Learning, "
        "http://ufldl.stanford.edu/housenumbers/, for non-commercial use only",
    ),
}
