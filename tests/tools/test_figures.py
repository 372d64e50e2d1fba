"""Every file in `images/` is what the code draws, and the map of the rooms is that of today."""

import re

import numpy as np
import pytest
from figures import FIGURES, PICTURES, rooms, write_figures
from PIL import Image

from hvdcourse.paths import IMAGES, PROJECT

FILES = [*(f"{name}.svg" for name in FIGURES), *(f"{name}.png" for name in PICTURES)]
RECORDED = ["readme_check.svg", "readme_jupyterlab.png"]  # of a terminal and of JupyterLab
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The folder of all figures, drawn anew."""
    folder = tmp_path_factory.mktemp("images")
    write_figures(folder)
    return folder


def test_nothing_else_lies_among_the_images():
    assert sorted(path.name for path in IMAGES.iterdir()) == sorted(FILES + RECORDED)


# One machine gives the same bytes each time. Another one may round a coordinate, or a pixel of a
# letter, the other way, and the matplotlib of Python 3.10 moves letters by up to 0.17 points.
@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".svg")])
def test_a_figure_is_what_the_code_draws(name, drawn):
    stored, anew = ((folder / name).read_text() for folder in (IMAGES, drawn))
    is_stale = f"images/{name} is not what the code draws: make figures, and look at it"
    assert NUMBER.sub("0", anew) == NUMBER.sub("0", stored), is_stale
    numbers = [np.array(NUMBER.findall(text), float) for text in (anew, stored)]
    assert np.abs(numbers[0] - numbers[1]).max() < 0.25, is_stale


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".png")])
def test_a_picture_is_what_the_code_draws(name, drawn):
    stored, anew = (
        np.asarray(Image.open(folder / name).convert("RGB")) for folder in (IMAGES, drawn)
    )
    assert anew.shape == stored.shape
    differs = np.abs(anew.astype(int) - stored).max(axis=2) > 16
    assert differs.sum() < 50, f"images/{name} is not what the code draws: make figures"


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_leaves_the_figure(name):
    canvas = FIGURES[name]()
    right, top = canvas.figure.bbox.max
    assert canvas.axes.texts
    for text in canvas.axes.texts:
        box = text.get_window_extent()
        within = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= right and box.y1 <= top
        assert within, text.get_text()


def test_the_map_follows_the_imports(monkeypatch):
    graph = rooms.grimp.build_graph(rooms.PACKAGE, cache_dir=None)
    monkeypatch.setattr(rooms.grimp, "build_graph", lambda *_, **__: graph)

    def imports_of(name):
        floors, _ = rooms.read_floors()
        return next(room.imports for floor in floors for room in floor if room.name == name)

    before = imports_of("plots")
    assert "launch" in before
    assert "data" not in before
    graph.add_import(importer="hvdcourse.plots.runs", imported="hvdcourse.data.sets")
    assert imports_of("plots") == {*before, "data"}
    graph.add_import(importer="hvdcourse.plots.runs", imported="hvdcourse.errors")
    assert imports_of("plots") == {*before, "data"}


def test_the_map_has_every_room_and_every_module_beside_them():
    floors, ground = rooms.read_floors()
    named = {room.name for floor in floors for room in floor}
    folder = PROJECT / rooms.PACKAGE
    assert named == {path.parent.name for path in folder.glob("*/__init__.py")}
    assert {*ground, "__init__"} == {path.stem for path in folder.glob("*.py")}
    assert all(room.purpose for floor in floors for room in floor)


def test_no_text_of_the_map_lies_where_lines_run():
    canvas = rooms.draw_rooms()
    points_per_pixel = 72 / canvas.figure.dpi
    texts = [text for text in canvas.axes.texts if text.get_position()[1] > rooms.TOP]
    assert texts
    for text in texts:
        box = text.get_window_extent()
        assert box.x1 * points_per_pixel < rooms.RIGHT - 4, text.get_text()
        if text.get_weight() == "bold" and "·" not in text.get_text():
            assert box.x1 * points_per_pixel < rooms.LEFT + rooms.PADDING + rooms.NAMES - 2
