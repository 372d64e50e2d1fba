"""The map of the package: its rooms on their floors, and which room imports which."""

import ast
from dataclasses import dataclass
from textwrap import wrap

import grimp
from importlinter.api import read_configuration

from figures.drawing import Canvas, tint
from hvdcourse.paths import PROJECT
from hvdcourse.plots.palette import LINE, PANEL, QUIET, RANK_COLORS, SLATE, VERMILION

PACKAGE = "hvdcourse"
COLORS = (*RANK_COLORS, VERMILION, SLATE)
LEFT, TOP, NAMES, PURPOSES, LANE = 14, 56, 122, 400, 20
PADDING, BETWEEN_ROOMS, BETWEEN_FLOORS, BETWEEN_LINES = 8, 7, 12, 18
BOX = NAMES + PURPOSES
RIGHT = LEFT + PADDING + BOX
NAME_SIZE, TEXT_SIZE, LETTERS = 15, 13, 52

LEGEND = (
    "A dot means: this room imports the room in which the dot's line ends.",
    "Imports go down only. Rooms on the same floor do not import each other.",
)


@dataclass(frozen=True)
class Room:
    """A package in the package: its name, what it is for in lines, and the rooms it imports."""

    name: str
    purpose: list[str]
    imports: set[str]

    @property
    def height(self) -> float:
        """Points from the upper to the lower edge of its box."""
        return 14 + BETWEEN_LINES * max(2, len(self.purpose))


def read_floors() -> tuple[list[list[Room]], list[str]]:
    """Return the rooms of each floor, the highest first, and the modules of the ground.

    The floors stand in pyproject.toml; imports and purposes are read from the code itself.
    """
    contracts = read_configuration(str(PROJECT / "pyproject.toml"))["contracts_options"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    *floors, ground = ([name.strip() for name in layer.split("|")] for layer in layers)
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    names = {name for floor in floors for name in floor}

    def imports_of(room: str) -> set[str]:
        return {
            other
            for other in names - {room}
            if graph.direct_import_exists(
                importer=f"{PACKAGE}.{room}", imported=f"{PACKAGE}.{other}", as_packages=True
            )
        }

    rooms = [[Room(name, purpose_of(name), imports_of(name)) for name in floor] for floor in floors]
    return rooms, ground


def purpose_of(room: str) -> list[str]:
    """Return the first paragraph of what a room says of itself, in lines that fit its box."""
    source = (PROJECT / PACKAGE / room / "__init__.py").read_text()
    paragraph = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0]
    return wrap(paragraph.replace("``", ""), LETTERS)


def draw_rooms() -> Canvas:
    """Draw the floors from top to bottom, and at their right the lines of the imports.

    Each imported room has a line of its own. The lines of upper rooms run further left: where the
    line of a lower room turns to its box, they have ended already.
    """
    floors, ground = read_floors()
    rooms = [room for floor in floors for room in floor]
    imported = [room for room in rooms if any(room.name in other.imports for other in rooms)]
    lanes = {room.name: RIGHT + 44 + LANE * number for number, room in enumerate(imported)}
    colors = {room.name: COLORS[n % len(COLORS)] for n, room in enumerate(imported)}
    tops, bands = place(floors)
    bottom = bands[-1][1] + BETWEEN_FLOORS
    canvas = Canvas(max(lanes.values()) + 22, bottom + 58, f"The rooms of the package {PACKAGE}")
    for line, words in enumerate(LEGEND):
        canvas.text((LEFT + 4, 18 + 21 * line), words, TEXT_SIZE, ha="left")
    for start, end in bands:
        canvas.box((LEFT, start), (BOX + 2 * PADDING, end - start), PANEL, round=8)
    for room in rooms:
        draw_room(canvas, room, tops[room.name], colors.get(room.name, QUIET))
        if room.imports:
            y = exit_of(room, tops)
            canvas.line([(RIGHT, y), (max(lanes[name] for name in room.imports), y)], LINE)
    for room in imported:
        starts = [exit_of(other, tops) for other in rooms if room.name in other.imports]
        end = tops[room.name] + room.height * 0.7
        draw_imports(canvas, lanes[room.name], starts, end, colors[room.name])
    draw_ground(canvas, ground, bottom)
    return canvas


def place(floors: list[list[Room]]) -> tuple[dict[str, float], list[tuple[float, float]]]:
    """Return the upper edge of each room, and the upper and lower edge of each floor."""
    tops, bands = {}, []
    y = float(TOP)
    for floor in floors:
        start = y
        y += PADDING
        for room in floor:
            tops[room.name] = y
            y += room.height + BETWEEN_ROOMS
        y += PADDING - BETWEEN_ROOMS
        bands.append((start, y))
        y += BETWEEN_FLOORS
    return tops, bands


def exit_of(room: Room, tops: dict[str, float]) -> float:
    """Return the height at which a room's imports leave its box."""
    return tops[room.name] + room.height * 0.35


def draw_room(canvas: Canvas, room: Room, top: float, color: str) -> None:
    """Draw a room's box with its name and what it is for."""
    left = LEFT + PADDING
    canvas.box((left, top), (BOX, room.height), tint(color, 0.18), color, line=1.6, round=5)
    middle = top + room.height / 2
    canvas.text((left + 12, middle), room.name, NAME_SIZE, ha="left", weight="bold")
    for number, line in enumerate(room.purpose):
        y = middle + (number - (len(room.purpose) - 1) / 2) * BETWEEN_LINES
        canvas.text((left + NAMES, y), line, TEXT_SIZE, ha="left")


def draw_imports(canvas: Canvas, x: float, starts: list[float], end: float, color: str) -> None:
    """Draw the line that leads to a room, with a dot beside each room that imports it."""
    canvas.line([(x, min(starts)), (x, end), (RIGHT + 15, end)], color, line=2.2)
    canvas.arrow((RIGHT + 16, end), (RIGHT + 1, end), color, line=2.2, head=15)
    for start in starts:
        canvas.dot((x, start), 5, color)


def draw_ground(canvas: Canvas, modules: list[str], top: float) -> None:
    """Draw the modules that stand beside the rooms; no lines lead there, since any room may."""
    canvas.box((LEFT, top), (BOX + 2 * PADDING, 44), tint(QUIET, 0.2), QUIET, line=1.6, round=8)
    names = " · ".join(modules)
    canvas.text((LEFT + PADDING + 12, top + 22), names, NAME_SIZE, ha="left", weight="bold")
    words = "the ground: every room may import these"
    canvas.text((RIGHT - 12, top + 22), words, TEXT_SIZE, ha="right")
