"""What ``hvdcourse class`` prints, hides and draws."""

import io
import json
from pathlib import Path

import pytest
from classes import a_class
from matplotlib.image import imread
from rich.console import Console

from hvdcourse.commands.classroom import show_class
from hvdcourse.errors import BadInput

NAMES = ("ann", "ben", "eve", "zoe")


@pytest.fixture
def shown(tmp_path, capsys):
    """Show a class of four; returns whether all was read, and what is on stdout and stderr."""
    folder = a_class(tmp_path / "class")

    def show(*more, names=False, picture=None, as_json=False):
        console = Console(file=io.StringIO(), width=110)
        well = show_class(console, [folder, *more], names, picture, as_json)
        told = capsys.readouterr()
        return well, console.file.getvalue() + told.out, told.err

    return show


def test_the_table_says_where_learners_are_and_what_stops_them(shown):
    well, table, said = shown(names=True)
    assert (well, said) == (True, "")
    rows = [line.split("│") for line in table.splitlines() if "│" in line]
    cells = {row[1].strip(): [cell.strip() for cell in row[2:4]] for row in rows}
    assert list(cells) == list(NAMES)
    assert cells["ben"] == ["2 of 67", "mpi_concepts, step 2: The images are shared out"]
    assert cells["zoe"] == ["0 of 67", "not begun"]
    assert "fashion_mnist, step 2: " in table.partition("stop most")[2].splitlines()[1]


@pytest.mark.parametrize("as_json", [False, True])
def test_names_are_hidden_unless_asked_for(shown, as_json, tmp_path):
    picture = tmp_path / "class.svg"
    _, told, _ = shown(as_json=as_json, picture=picture)
    told += picture.read_text()
    assert not [name for name in NAMES if name in told.split() or f'"{name}"' in told]
    assert "learner 1" in told
    _, told, _ = shown(as_json=as_json, names=True)
    assert all(name in told for name in NAMES)


def test_programs_get_all_steps_and_all_stops(shown):
    data = json.loads(shown(as_json=True)[1])
    assert [learner["met"] for learner in data["learners"]] == [9, 6, 2, 0]
    best = data["learners"][0]
    assert (best["learner"], best["exercise"], best["step"]) == ("learner 1", "fashion_mnist", 2)
    assert best["steps"]["fashion_mnist"]["1"] is True
    assert [stop["stopped"] for stop in data["stops"]] == [2, 1]
    assert data["left_out"] == 0


def test_what_cannot_be_read_is_told_and_the_rest_shown(shown, tmp_path):
    well, table, said = shown(tmp_path / "gone")
    assert not well
    assert said == f"left out: there is no folder {tmp_path / 'gone'}\n"
    assert "learner 4" in table


def test_where_nobody_is_left_it_is_an_error(tmp_path, capsys):
    with pytest.raises(BadInput, match="no learner's progress"):
        show_class(Console(file=io.StringIO()), [tmp_path / "gone"], False, None, False)
    assert "gone" in capsys.readouterr().err


def test_the_picture_is_a_png_or_an_svg(shown, tmp_path):
    shown(picture=tmp_path / "class.png")
    height, width, _ = imread(tmp_path / "class.png").shape
    assert min(height, width) > 300
    with pytest.raises(BadInput, match=r"a picture is a file \.png or \.svg; got 'class\.jpg'"):
        show_class(Console(), [tmp_path], False, Path("class.jpg"), False)
