"""A folder of images, with a folder for each class, is a data set, or it is said what it lacks."""

import os

import numpy as np
import pytest
from image_sets import assert_consistent, random_images
from PIL import Image

from hvdcourse.data.image_folder import find_images, read_images
from hvdcourse.data.published import PUBLISHED
from hvdcourse.data.sets import BadDataSet, load

CIFAR10_VARIABLE = "HVDCOURSE_CIFAR10_FOLDER"


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


def test_gray_palette_and_transparent_images_become_red_green_and_blue(folder):
    gray = random_images(4, 6)
    for number, mode in enumerate(("L", "P", "RGBA")):
        Image.fromarray(gray).convert(mode).save(folder / "train" / "cat" / f"{number}.png")
    found = load(folder, dtype="uint8")
    for image in found.train_images[:3]:
        np.testing.assert_array_equal(image, np.repeat(gray[..., None], 3, axis=2))


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
