"""The painters' pictures: how many, always the same, drawn once, whole or absent."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hvdcourse import load
from hvdcourse.data.download import FOLDER_VARIABLE
from hvdcourse.data.image_folder import find_images
from hvdcourse.data.painters import EDITION, PAINTERS, draw_once, draw_pictures, image_folder
from hvdcourse.data.painting import paint

FEW = 0.02


def digest(folder: Path) -> str:
    """Return one checksum of all files below a folder, with their names."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.jpg")):
        found.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return found.hexdigest()


@pytest.fixture
def few(monkeypatch, tmp_path):
    """Let the painters leave few pictures each, and keep them in this test's folder."""
    small = {name: replace(one, train=4, test=2) for name, one in PAINTERS.items()}
    monkeypatch.setattr("hvdcourse.data.painters.PAINTERS", small)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "data"))
    return tmp_path / "data"


def test_what_a_killed_drawing_has_left_goes_with_the_next(few):
    left = few / f".{EDITION}-killed" / "train"
    left.mkdir(parents=True)
    draw_once(few / EDITION)
    assert [path.name for path in few.iterdir()] == [EDITION]


def test_eleven_painters_left_3181_and_790_pictures_and_unequally_many():
    train, test = zip(*((one.train, one.test) for one in PAINTERS.values()), strict=True)
    assert (len(PAINTERS), sum(train), sum(test)) == (11, 3181, 790)
    assert max(train) > 5 * min(train)
    assert list(PAINTERS) == sorted(PAINTERS)


def test_pictures_are_the_same_on_each_call_and_differ_from_each_other(tmp_path):
    for name in ("one", "two"):
        draw_pictures(tmp_path / name, FEW)
    assert digest(tmp_path / "one") == digest(tmp_path / "two")
    files = list((tmp_path / "one").rglob("*.jpg"))
    assert len({path.read_bytes() for path in files}) == len(files)


# Mean red, green and blue of the upper and of the lower half of each painter's first two pictures.
COLORS_OF_EDITION = {
    "ambrel_tosk": [113, 108, 94, 110, 105, 97],
    "birne_valko": [79, 84, 84, 95, 100, 100],
    "cassim_orrel": [154, 126, 231, 114, 89, 202],
    "dunja_feltz": [121, 114, 105, 113, 108, 99],
    "elvar_quiss": [115, 95, 105, 134, 114, 125],
    "fiora_mess": [163, 99, 113, 155, 95, 108],
    "gorm_hadlik": [130, 73, 64, 123, 62, 52],
    "ilse_varnot": [139, 110, 140, 148, 121, 132],
    "jorun_pesk": [136, 140, 128, 134, 130, 126],
    "lunel_basko": [125, 154, 119, 120, 151, 116],
    "mirko_stauve": [112, 115, 121, 136, 137, 148],
}


def test_another_numpy_or_pillow_does_not_change_the_edition_unseen():
    assert EDITION == "painters-1"
    for number, (name, painter) in enumerate(PAINTERS.items()):
        pictures = [paint(painter, np.random.default_rng([number, 0, n])) for n in range(2)]
        halves = np.array([np.asarray(p).reshape(2, -1, 3).mean(1) for p in pictures]).mean(0)
        assert np.abs(halves.ravel() - COLORS_OF_EDITION[name]).max() < 1, name


def test_a_picture_is_a_jpeg_of_64x64_pixels_in_its_painters_folder(tmp_path):
    draw_pictures(tmp_path, FEW)
    found = find_images(tmp_path)
    assert found.classes == tuple(PAINTERS)
    for path in (*found.train_paths, *found.test_paths):
        with Image.open(path) as image:
            assert (image.format, image.size, image.mode) == ("JPEG", (64, 64), "RGB")


def test_they_load_as_a_data_set(few):
    found = load("painters", dtype="uint8")
    assert found.train_images.shape == (44, 64, 64, 3)
    assert found.test_images.shape == (22, 64, 64, 3)
    assert found.classes == tuple(PAINTERS)
    assert "CC BY" in found.source


def test_they_are_drawn_once(few, capfd):
    folder = image_folder()
    assert "drawing the painters' pictures" in capfd.readouterr().err
    assert image_folder("painters") == folder == few / EDITION
    assert capfd.readouterr().err == ""


def test_another_name_is_the_learners_own_folder(tmp_path):
    assert image_folder(tmp_path) == tmp_path
    assert image_folder("~/gallery") == Path.home() / "gallery"


def test_drawing_that_breaks_off_leaves_nothing_behind(few, monkeypatch):
    def broken(*_):
        raise OSError("No space left on device")

    few.mkdir()
    monkeypatch.setattr("hvdcourse.data.painters.paint", broken)
    with pytest.raises(OSError, match="No space left"):
        draw_once(few / EDITION)
    assert list(few.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_named(few, tmp_path):
    few.write_text("a file where the folder should be")
    with pytest.raises(OSError, match=f"{few}.*set {FOLDER_VARIABLE} to a folder"):
        image_folder()


def test_several_processes_draw_them_once(tmp_path):
    code = """
from dataclasses import replace
from hvdcourse.data import painters
few = {name: replace(one, train=4, test=2) for name, one in painters.PAINTERS.items()}
painters.PAINTERS = few
print(painters.image_folder())
"""
    environment = {**os.environ, FOLDER_VARIABLE: str(tmp_path)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]  # fmt: skip
    ended = [process.communicate(timeout=60) for process in processes]
    assert {out for out, _ in ended} == {f"{tmp_path / EDITION}\n"}
    assert sum("drawing the painters" in err for _, err in ended) == 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [EDITION]
