"""What the figures share: a canvas measured in points, boxes and arrows."""

import io
import re
from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

from hvdcourse.plots.palette import INK, LINE, QUIET, SLATE, WHITE

SMALL, NORMAL, TITLE = 10.5, 12.0, 13.5

_STYLE = {
    "font.family": "DejaVu Sans",
    "svg.fonttype": "none",
    "svg.hashsalt": "hvdcourse",
    "hatch.linewidth": 0.8,
}

Point = tuple[float, float]

# Coordinates in an SVG file: in path data and where texts and their letters stand.
_COORDINATES = re.compile(r'(?<= d=")[^"]*|translate\([^)]*\)')
# Texts stay texts. Where DejaVu Sans is missing (Windows, macOS), Verdana has its widths.
_FONT = "text {font-family: 'DejaVu Sans', Verdana, sans-serif}"
_NEEDLESS = re.compile(r' *<!--.*?-->\n|font-family: [^;"]*;? ?| transform="rotate\(-0 [^"]*"')
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def tint(color: str, strength: float = 0.3) -> str:
    """Return the color mixed with white; 0 is white, 1 is the color itself."""
    channels = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(255 + (value - 255) * strength):02X}" for value in channels)


def compact(svg: str) -> str:
    """Return the SVG text without indentation and comments, with coordinates to 0.01 point."""

    def shorten(match: re.Match) -> str:
        rounded = _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", match[0])
        return " ".join(rounded.split())

    svg = _COORDINATES.sub(shorten, _NEEDLESS.sub("", svg))
    svg = svg.replace("</style>", f"{_FONT}</style>")
    return re.sub(r"^ +", "", svg, flags=re.MULTILINE)


class Canvas:
    """A white drawing area. One unit is one point; (0, 0) is the upper left corner."""

    def __init__(self, width: float, height: float, title: str):
        self.width, self.height, self.title = width, height, title
        self.figure = Figure(figsize=(width / 72, height / 72), facecolor=WHITE)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, width), ylim=(height, 0))
        self.axes.set_axis_off()

    def text(self, at: Point, words: str, size: float = NORMAL, **options: object) -> None:
        """Write words with their middle at a point, or as ``ha`` says."""
        # Each line is a text of its own, so that a browser with another font still centers it.
        lines = words.split("\n")
        centered = "center" if "rotation" in options else "center_baseline"
        style = {"ha": "center", "va": centered, "color": INK, **options}
        for number, line in enumerate(lines):
            y = at[1] + (number - (len(lines) - 1) / 2) * 1.4 * size
            self.axes.text(at[0], y, line, fontsize=size, **style)

    def box(
        self, at: Point, size: Point, fill: str = WHITE, edge: str = LINE, **options: object
    ) -> None:
        """Draw a box with round corners, given its upper left corner and its width and height.

        Options: ``label``, ``color`` and ``font`` of the label, ``line`` (width), ``round``,
        ``dashed``, ``bold``.
        """
        radius = options.get("round", 3)
        self.axes.add_patch(
            FancyBboxPatch(
                at,
                *size,
                boxstyle=f"round,pad=0,rounding_size={radius}",
                facecolor=fill,
                edgecolor=edge,
                linewidth=options.get("line", 1.2),
                linestyle="--" if options.get("dashed") else "-",
                clip_on=False,
            )
        )
        label = options.get("label")
        if label is not None:
            middle = (at[0] + size[0] / 2, at[1] + size[1] / 2 - 0.8)
            self.text(
                middle,
                str(label),
                options.get("font", NORMAL),
                color=options.get("color", INK),
                weight="bold" if options.get("bold") else "normal",
            )

    def bar(self, at: Point, size: Point, fill: str, edge: str, hatch: str = "") -> None:
        """Draw one stretch of a time line."""
        style = {"facecolor": fill, "edgecolor": edge, "linewidth": 1.1, "hatch": hatch}
        self.axes.add_patch(Rectangle(at, *size, clip_on=False, **style))

    def dot(self, at: Point, radius: float, color: str) -> None:
        """Draw a filled circle, above all lines."""
        style = {"facecolor": color, "linewidth": 0, "zorder": 3}
        self.axes.add_patch(Circle(at, radius, clip_on=False, **style))

    def arrow(self, start: Point, end: Point, color: str = QUIET, **options: object) -> None:
        """Draw an arrow; ``bend`` curves it, ``line`` is its width, ``both`` gives two heads."""
        self.axes.add_patch(
            FancyArrowPatch(
                start,
                end,
                arrowstyle="<|-|>" if options.get("both") else "-|>",
                mutation_scale=options.get("head", 11),
                connectionstyle=f"arc3,rad={options.get('bend', 0)}",
                color=color,
                linewidth=options.get("line", 1.6),
                linestyle="--" if options.get("dashed") else "-",
                shrinkA=0,
                shrinkB=0,
                clip_on=False,
            )
        )

    def line(self, points: Sequence[Point], color: str = QUIET, **options: object) -> None:
        """Draw a line through points; ``dashed`` and ``line`` (width) style it."""
        self.axes.plot(
            [point[0] for point in points],
            [point[1] for point in points],
            color=color,
            linewidth=options.get("line", 1.3),
            linestyle="--" if options.get("dashed") else "-",
            solid_capstyle="butt",
            clip_on=False,
        )

    def bracket(self, start: Point, end: Point, depth: float) -> None:
        """Draw a square bracket from start to end that opens towards them by ``depth``."""
        across = (0, depth) if start[1] == end[1] else (depth, 0)
        corner_1 = (start[0] + across[0], start[1] + across[1])
        corner_2 = (end[0] + across[0], end[1] + across[1])
        self.line([start, corner_1, corner_2, end])

    def save(self, path: Path) -> None:
        """Write the drawing as an SVG file whose bytes depend on the drawing alone."""
        with rc_context(_STYLE):
            text = io.StringIO()
            metadata = {"Date": None, "Creator": None, "Title": self.title}
            FigureCanvasSVG(self.figure).print_svg(text, metadata=metadata)
        path.write_text(compact(text.getvalue()), encoding="utf-8")


def value_row(
    canvas: Canvas,
    at: Point,
    values: Sequence[object],
    colors: Sequence[str],
    size: Point = (36, 28),
) -> None:
    """Draw values side by side in boxes; a slate box, a result, gets white text."""
    for position, (value, color) in enumerate(zip(values, colors, strict=True)):
        is_result = color == SLATE
        canvas.box(
            (at[0] + position * size[0], at[1]),
            (size[0] - 3, size[1]),
            fill=SLATE if is_result else tint(color),
            edge=color,
            label=value,
            color=WHITE if is_result else INK,
            bold=is_result,
        )
