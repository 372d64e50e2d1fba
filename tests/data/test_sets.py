import gzip
import hashlib
import importlib.util
import io
import pickle
import re
import socket
import struct
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from image_sets import assert_consistent, random_images
from scipy.io import savemat

from hvdcourse.data.download import DataUnavailable
from hvdcourse.data.published import PUBLISHED
from hvdcourse.data.sets import NAMES, BadDataSet, load, load_digits


def test_digits_are_the_default():
    found, digits = load(), load_digits()
    assert_consistent(found, np.float32, 1)
    assert found.train_images.shape == (1437, 8, 8, 1)
    assert found.test_images.shape == (360, 8, 8, 1)
    assert found.classes == tuple("0123456789")
    assert "CC BY 4.0" in found.source
    for name in ("train_images", "train_labels", "test_images", "test_labels"):
        np.testing.assert_array_equal(getattr(found, name), getattr(digits, name))


def test_digits_as_bytes():
    found = load("digits", dtype="uint8")
    assert_consistent(found, np.uint8, 255)
    np.testing.assert_allclose(found.train_images / 255, load_digits().train_images, atol=1 / 255)


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Put small files in the place of published ones, and make theirs the right checksums."""
    monkeypatch.setenv("HVDCOURSE_DATA", str(tmp_path))

    def put_files(name, contents):
        published = PUBLISHED[name]
        (tmp_path / name).mkdir()
        files = []
        for file, content in zip(published.files, contents, strict=True):
            (tmp_path / file.place).write_bytes(content)
            files.append(replace(file, sha256=hashlib.sha256(content).hexdigest()))
        monkeypatch.setitem(PUBLISHED, name, replace(published, files=tuple(files)))

    return put_files


def npz(**arrays):
    target = io.BytesIO()
    np.savez_compressed(target, **arrays)
    return target.getvalue()


def idx(array):
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return gzip.compress(header + array.tobytes())


def cifar_archive(images, labels):
    """The published archive's layout: color planes, pickled with bytes as keys, in its order."""
    target = io.BytesIO()
    cuts = dict(
        zip([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"], range(6), strict=True)
    )
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name in ("data_batch_4", "test_batch", *(f"data_batch_{n}" for n in (3, 2, 5, 1))):
            part = slice(2 * cuts[name], 2 * cuts[name] + 2)
            planes = images[part].transpose(0, 3, 1, 2).reshape(2, -1)
            content = pickle.dumps({b"data": planes, b"labels": labels[part].tolist()})
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return target.getvalue()


def mat(images, labels):
    target = io.BytesIO()
    savemat(target, {"X": images.transpose(1, 2, 3, 0), "y": np.where(labels, labels, 10)[:, None]})
    return target.getvalue()


def small_files(name):
    """Two to twelve images in the format of a published data set, and what they should load as."""
    shape = (28, 28) if "mnist" in name else (32, 32, 3)
    images = random_images(12, *shape)
    labels = np.random.default_rng(0).permutation(12).astype(np.uint8) % 10
    train, test = slice(0, 10), slice(10, 12)
    if name == "mnist":
        files = [
            npz(
                x_train=images[train],
                y_train=labels[train],
                x_test=images[test],
                y_test=labels[test],
            )
        ]
    elif name == "fashion_mnist":
        files = [idx(part) for part in (images[train], labels[train], images[test], labels[test])]
    elif name == "cifar10":
        files = [cifar_archive(images, labels)]
    else:
        files = [mat(images[part], labels[part].astype(np.uint8)) for part in (train, test)]
    return files, images.reshape(12, *shape[:2], -1), labels


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_a_published_format_is_read(put, name):
    files, images, labels = small_files(name)
    put(name, files)
    found = load(name, dtype="uint8")
    assert_consistent(found, np.uint8, 255)
    np.testing.assert_array_equal(found.train_images, images[:10])
    np.testing.assert_array_equal(found.test_images, images[10:])
    np.testing.assert_array_equal(found.train_labels, labels[:10])
    np.testing.assert_array_equal(found.test_labels, labels[10:])
    assert len(found.classes) == 10
    scaled = load(name)
    assert_consistent(scaled, np.float32, 1)
    np.testing.assert_allclose(scaled.train_images, images[:10] / 255, rtol=1e-6)


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_without_a_network_no_other_data_set_takes_its_place(name, tmp_path, monkeypatch):
    monkeypatch.setenv("HVDCOURSE_DATA", str(tmp_path))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HVDCOURSE_MIRROR", f"http://127.0.0.1:{unused.getsockname()[1]}")
    with pytest.raises(DataUnavailable, match="--data digits") as raised:
        load(name)
    first, *others = PUBLISHED[name].files
    assert str(tmp_path / first.place) in str(raised.value)
    assert all(file.address in str(raised.value) for file in others)


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_addresses_and_checksums_are_those_of_keras(name):
    [keras] = importlib.util.find_spec("tf_keras").submodule_search_locations
    code = (Path(keras) / "src" / "datasets" / f"{name}.py").read_text()
    [file] = PUBLISHED[name].files
    assert re.findall("[0-9a-f]{64}", code) == [file.sha256]
    assert file.url.rsplit("/", 1)[0] in code


def test_every_file_has_a_place_and_a_checksum_of_its_own():
    files = [file for published in PUBLISHED.values() for file in published.files]
    assert len({file.place for file in files}) == len({file.sha256 for file in files}) == len(files)
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in files)


def test_an_unknown_name_is_refused_with_the_names():
    with pytest.raises(BadDataSet, match="did you mean fashion_mnist") as raised:
        load("fashion-mnist")
    assert all(name in str(raised.value) for name in NAMES)


def test_arguments_that_do_not_fit_are_refused():
    with pytest.raises(BadDataSet, match="dtype must be 'float32' or 'uint8'; got 'float16'"):
        load("digits", dtype="float16")
    with pytest.raises(BadDataSet, match="image_size is for folders of images"):
        load("digits", image_size=(8, 8))
