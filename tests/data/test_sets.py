import gzip
import hashlib
import importlib.util
import io
import os
import pickle
import re
import socket
import struct
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from hvdcourse.data.download import DataUnavailable
from hvdcourse.data.image_folder import find_images, read_images
from hvdcourse.data.published import PUBLISHED
from hvdcourse.data.sets import NAMES, BadDataSet, load, load_digits

CIFAR10_VARIABLE = "HVDCOURSE_CIFAR10_FOLDER"
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
    """The published archive's layout: colour planes, pickled with bytes as keys, in its order."""
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
    labels = RANDOM.permutation(12).astype(np.uint8) % 10
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


@pytest.fixture
def folder(tmp_path):
    """Two classes of 4x6 pixels, with 3 images each to train on and 2 to test on."""
    for part, count in (("train", 3), ("test", 2)):
        for name in ("dog", "cat"):
            place = tmp_path / part / name
            place.mkdir(parents=True)
            for number in range(count):
                Image.fromarray(random_images(4, 6, 3)).save(place / f"{number}.png")
    return tmp_path


def test_an_image_folder_is_read(folder):
    (folder / "README.md").touch()
    (folder / "train" / ".hidden").touch()
    (folder / "train" / "cat" / ".hidden").touch()
    found = load(folder)
    assert_consistent(found, np.float32, 1)
    assert found.classes == ("cat", "dog")
    assert found.train_images.shape == (6, 4, 6, 3)
    assert found.train_labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.test_labels.tolist() == [0, 0, 1, 1]
    assert str(folder) in found.source
    pixels = np.asarray(Image.open(folder / "train" / "dog" / "1.png"))
    np.testing.assert_array_equal(load(str(folder), dtype="uint8").train_images[4], pixels)


def test_a_folder_is_named_as_it_was_typed(folder, monkeypatch):
    """A record tells nothing of the machine that it was made on."""
    monkeypatch.chdir(folder.parent)
    assert f"the images in {folder.name};" in load(folder.name).source


def test_the_images_of_a_folder_can_be_found_without_reading_them(folder):
    found = find_images(folder)
    assert found.train_paths[3] == folder / "train" / "dog" / "0.png"
    assert found.train_labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert read_images(found.test_paths[:3]).shape == (3, 4, 6, 3)


def test_grey_palette_and_transparent_images_become_red_green_and_blue(folder):
    grey = random_images(4, 6)
    for number, mode in enumerate(("L", "P", "RGBA")):
        Image.fromarray(grey).convert(mode).save(folder / "train" / "cat" / f"{number}.png")
    found = load(folder, dtype="uint8")
    for image in found.train_images[:3]:
        np.testing.assert_array_equal(image, np.repeat(grey[..., None], 3, axis=2))


def test_a_class_without_test_images_is_allowed(folder):
    for path in (folder / "test" / "dog").iterdir():
        path.unlink()
    (folder / "test" / "dog").rmdir()
    assert load(folder).test_labels.tolist() == [0, 0]


def test_images_of_different_sizes_are_refused_or_resized(folder):
    odd = folder / "test" / "dog" / "1.png"
    Image.fromarray(random_images(8, 12, 3)).save(odd)
    with pytest.raises(BadDataSet, match=r"8x12 pixels.*4x6: .*image_size") as raised:
        load(folder)
    assert str(odd) in str(raised.value)
    assert load(folder, image_size=(5, 7)).test_images.shape == (4, 5, 7, 3)


def damage(path, how):
    if how == "text":
        path.write_text("no image")
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "truncated":
        path.write_bytes(path.read_bytes()[:60])
    else:
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("how", ["text", "empty", "truncated", "folder"])
def test_a_file_that_is_no_image_is_named(folder, how):
    path = folder / "train" / "dog" / "2.png"
    damage(path, how)
    with pytest.raises(BadDataSet, match="cannot be read as an image") as raised:
        load(folder)
    assert str(path) in str(raised.value)


def test_a_truncated_jpeg_is_named(folder):
    path = folder / "train" / "dog" / "2.jpg"
    Image.fromarray(random_images(4, 6, 3)).save(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadDataSet, match="cannot be read as an image") as raised:
        load(folder)
    assert str(path) in str(raised.value)


def test_sixteen_bits_a_channel_are_refused(folder):
    path = folder / "train" / "cat" / "0.png"
    Image.fromarray(np.full((4, 6), 40_000, np.uint16)).save(path)
    with pytest.raises(BadDataSet, match="more than 8 bits a channel") as raised:
        load(folder)
    assert str(path) in str(raised.value)


def test_what_a_folder_lacks_is_named(folder, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    with pytest.raises(BadDataSet, match=f"{empty} has no train/"):
        load(empty)
    with pytest.raises(BadDataSet, match="is no folder"):
        load(folder / "train" / "cat" / "0.png")
    (empty / "train").mkdir()
    with pytest.raises(BadDataSet, match="train has no folders"):
        load(empty)
    (folder / "test").rename(folder / "validation")
    with pytest.raises(BadDataSet, match=f"{folder} has no test/"):
        load(folder)


def test_a_class_folder_without_images_is_named(folder):
    (folder / "train" / "bird").mkdir()
    with pytest.raises(BadDataSet, match=f"{folder / 'train' / 'bird'} is empty"):
        load(folder)


def test_a_class_that_is_only_in_test_is_named(folder):
    (folder / "test" / "dog").rename(folder / "test" / "wolf")
    with pytest.raises(BadDataSet, match=r"no class 'wolf' in .*train, which has cat, dog"):
        load(folder)


def test_another_kind_of_file_in_a_class_folder_is_named(folder):
    path = folder / "test" / "cat" / "notes.txt"
    path.touch()
    with pytest.raises(BadDataSet, match=f"{path} is no image; images end in .jpg"):
        load(folder)


@pytest.mark.skipif(
    CIFAR10_VARIABLE not in os.environ,
    reason=f"{CIFAR10_VARIABLE} names no folder with CIFAR-10 as 60,000 image files",
)
def test_all_of_cifar10_as_an_image_folder():
    found = load(os.environ[CIFAR10_VARIABLE], dtype="uint8")
    assert_consistent(found, np.uint8, 255)
    assert found.train_images.shape == (50_000, 32, 32, 3)
    assert found.test_images.shape == (10_000, 32, 32, 3)
    assert found.classes == PUBLISHED["cifar10"].classes
    assert np.bincount(found.train_labels).tolist() == [5000] * 10
    assert np.bincount(found.test_labels).tolist() == [1000] * 10
    # The published training set's mean by channel, which JPEG hardly changes.
    np.testing.assert_allclose(
        found.train_images.mean(axis=(0, 1, 2)) / 255, [0.4914, 0.4822, 0.4465], atol=1e-3
    )
