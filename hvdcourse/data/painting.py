"""Paints a picture by code: a composition, a palette, a field of strokes, and a texture.

Lengths and places are parts of the picture's side, so that 0 and 1 are its edges.
"""

import colorsys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from hvdcourse.data.strokes import STROKES

PIXELS = 64
# Strokes are drawn larger and then made smaller, which smooths their edges.
LARGE = 2 * PIXELS

Map = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Painter:
    """How many pictures a painter left, and how they are painted.

    Args:
        train: how many pictures to train on.
        test: how many pictures to test on.
        compositions: where it is light and dark; one of them is drawn by lot for each picture.
        home: the hue that the painter loves best, in turns around the color circle.
        hues: offsets from the picture's main hue, which lies somewhere about home.
        saturation: of all colors, in 0…1.
        contrast: how far light and dark are apart, in 0…1.
        field: which way the strokes run.
        stroke: their shape, a key of ``STROKES``.
        length: of a stroke, in parts of the side.
        width: of a stroke, in parts of the side.
        count: how many strokes a picture has.
        texture: of the surface.
    """

    train: int
    test: int
    compositions: tuple[Callable[[np.random.Generator], Map], ...]
    home: float
    hues: tuple[float, ...]
    saturation: float
    contrast: float
    field: Callable[[np.random.Generator], Map]
    stroke: str
    length: float
    width: float
    count: int
    texture: Callable[[np.random.Generator], np.ndarray]


def paint(painter: Painter, rng: np.random.Generator) -> Image.Image:
    """Return one picture of PIXELS x PIXELS by this painter; all else is drawn by lot."""
    tone = painter.compositions[rng.integers(len(painter.compositions))](rng)
    palette = make_palette(painter, rng)
    angle = painter.field(rng)
    gray = lay_ground(tone, palette)
    draw_strokes(ImageDraw.Draw(gray), painter, tone, palette, angle, rng)
    pixels = np.asarray(gray.resize((PIXELS, PIXELS), Image.Resampling.BOX), np.float32)
    pixels = pixels * painter.texture(rng)[..., None]
    return Image.fromarray(photograph(pixels, rng))


def photograph(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the picture as a camera sees it, uint8: light from a side, exposure, and noise."""
    y, x = grid(PIXELS)
    turn = rng.uniform(0, 2 * np.pi)
    light = 1 + rng.uniform(0, 0.3) * ((x - 0.5) * np.cos(turn) + (y - 0.5) * np.sin(turn))
    photo = pixels * light[..., None] * rng.uniform(0.8, 1.15)
    photo = photo + rng.normal(0, rng.uniform(2, 7), photo.shape)
    return np.clip(photo, 0, 255).astype(np.uint8)


def grid(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of a square's points, y and x in 0…1, float32 of shape (side, side)."""
    places = (np.arange(side, dtype=np.float32) + 0.5) / side
    return np.broadcast_to(places[:, None], (side, side)), np.broadcast_to(places, (side, side))


def smooth(rng: np.random.Generator, waves: int = 3, finest: float = 2.0) -> Map:
    """Return a map that varies smoothly about 0 and mostly stays in -1…1."""
    directions = rng.normal(0, finest * np.pi / 1.5, (waves, 2))
    phases = rng.uniform(0, 2 * np.pi, waves)

    def value(y: np.ndarray, x: np.ndarray) -> np.ndarray:
        return sum(
            np.sin(a * x + b * y + p) for (a, b), p in zip(directions, phases, strict=True)
        ) / np.sqrt(waves)

    return value


# Compositions: how light it is at a place, about 0…1.


def compose_horizon(rng: np.random.Generator) -> Map:
    """Sky over land, or the other way round."""
    height, tilt, sign = rng.uniform(0.3, 0.7), rng.normal(0, 0.3), rng.choice((-1, 1))
    bumps = smooth(rng, finest=3)
    return lambda y, x: (
        0.5 + 0.4 * sign * np.tanh(8 * (y - height - tilt * (x - 0.5) - 0.06 * bumps(y, x)))
    )


def compose_figure(rng: np.random.Generator) -> Map:
    """A figure before a ground."""
    (cy, cx), sign = rng.uniform(0.3, 0.7, 2), rng.choice((-1, 1))
    ry, rx = rng.uniform(0.15, 0.35, 2)
    return lambda y, x: (
        0.5 + 0.4 * sign * np.tanh(3 * (1 - ((y - cy) / ry) ** 2 - ((x - cx) / rx) ** 2).clip(-2))
    )


def compose_clouds(rng: np.random.Generator) -> Map:
    """Light and dark without an object."""
    value = smooth(rng)
    return lambda y, x: 0.5 + 0.35 * value(y, x)


def compose_bands(rng: np.random.Generator) -> Map:
    """Broad bands in some direction."""
    turn, count, phase = rng.uniform(0, np.pi), rng.uniform(1.5, 3), rng.uniform(0, 6)
    a, b = 2 * np.pi * count * np.cos(turn), 2 * np.pi * count * np.sin(turn)
    return lambda y, x: 0.5 + 0.4 * np.sin(a * x + b * y + phase)


# Fields: the direction of a stroke at a place, in radians.


def field_flow(rng: np.random.Generator) -> Map:
    """Directions that turn slowly, as in a stream."""
    value = smooth(rng, finest=1.2)
    start = rng.uniform(0, np.pi)
    return lambda y, x: start + 1.6 * value(y, x)


def field_swirl(rng: np.random.Generator) -> Map:
    """Circles around a place."""
    cy, cx = rng.uniform(0.2, 0.8, 2)
    return lambda y, x: np.arctan2(y - cy, x - cx) + np.pi / 2


def field_rays(rng: np.random.Generator) -> Map:
    """Rays from a place."""
    cy, cx = rng.uniform(0.2, 0.8, 2)
    return lambda y, x: np.arctan2(y - cy, x - cx)


def field_straight(rng: np.random.Generator) -> Map:
    """One direction everywhere."""
    start = rng.uniform(0, np.pi)
    return lambda y, x: start + 0.0 * x


def field_crossed(rng: np.random.Generator) -> Map:
    """One of two directions at right angles."""
    start = rng.uniform(0, np.pi)
    return lambda y, x: start + np.pi / 2 * rng.integers(0, 2, np.shape(x))


def field_any(rng: np.random.Generator) -> Map:
    """No order at all."""
    return lambda y, x: rng.uniform(0, np.pi, np.shape(x))


def make_palette(painter: Painter, rng: np.random.Generator) -> np.ndarray:
    """Return 3 colors from dark to light for each hue: float of shape (hues, 3, 3) in 0…255."""
    main, mood = rng.normal(painter.home, 0.14), rng.normal(0, 0.06)
    spread = painter.contrast / 2 * rng.uniform(0.8, 1.2)
    saturation = np.clip(painter.saturation + rng.normal(0, 0.07), 0.05, 1)
    lightness = np.clip(np.array([0.5 - spread, 0.5, 0.5 + spread]) + mood, 0.05, 0.95)
    return 255 * np.array(
        [
            [colorsys.hls_to_rgb((main + hue) % 1, light, saturation) for light in lightness]
            for hue in painter.hues
        ]
    )


def lay_ground(tone: Map, palette: np.ndarray) -> Image.Image:
    """Return the canvas in the first hue, light and dark as the composition says."""
    level = np.clip(tone(*grid(LARGE // 4)), 0, 1)[..., None]
    dark, _, light = palette[0]
    ground = (dark + (light - dark) * level).astype(np.uint8)
    return Image.fromarray(ground).resize((LARGE, LARGE), Image.Resampling.BILINEAR)


def draw_strokes(
    canvas: ImageDraw.ImageDraw,
    painter: Painter,
    tone: Map,
    palette: np.ndarray,
    angle: Map,
    rng: np.random.Generator,
) -> None:
    """Put the strokes onto the canvas, in an order drawn by lot."""
    count = int(painter.count * rng.uniform(0.85, 1.15))
    y, x = rng.uniform(-0.03, 1.03, (2, count))
    level = np.clip(tone(y, x) + rng.normal(0, 0.15, count), 0, 0.999)
    hue = rng.integers(len(palette), size=count)
    shade = np.floor(level * 3).astype(int)
    colors = (palette[hue, shade] + rng.normal(0, 8, (count, 3))).clip(0, 255).astype(int)
    mean = [[painter.length], [painter.width]]
    length, width = LARGE * (rng.uniform(0.75, 1.25, (2, count)) * mean)
    turn = angle(y, x) + rng.normal(0, 0.1, count)
    outline, draw = STROKES[painter.stroke]
    outlines = outline(LARGE * x, LARGE * y, turn, length, width).tolist()
    widths = np.maximum(1, np.rint(width)).astype(int).tolist()
    for points, thick, degrees, color in zip(
        outlines, widths, np.degrees(turn).tolist(), colors.tolist(), strict=True
    ):
        draw(canvas, points, thick, degrees, tuple(color))


# Textures: what the colors are multiplied by, about 1, of shape (PIXELS, PIXELS).


def texture_smooth(rng: np.random.Generator) -> np.ndarray:
    """Nothing but paint."""
    return np.ones((PIXELS, PIXELS))


def texture_weave(rng: np.random.Generator) -> np.ndarray:
    """Threads of the canvas, over and under each other."""
    y, x = grid(PIXELS)
    threads = rng.uniform(12, 15)
    shift_y, shift_x = rng.uniform(0, 6, 2)
    return 1 + 0.16 * np.sin(2 * np.pi * threads * x + shift_x) * np.sin(
        2 * np.pi * threads * y + shift_y
    )


def texture_grain(rng: np.random.Generator) -> np.ndarray:
    """Rough paper."""
    coarse = rng.normal(0, 0.13, (PIXELS // 2, PIXELS // 2))
    return 1 + np.kron(coarse, np.ones((2, 2)))


def texture_cracks(rng: np.random.Generator) -> np.ndarray:
    """Old varnish with fine dark cracks."""
    image = Image.new("L", (PIXELS, PIXELS), 255)
    canvas = ImageDraw.Draw(image)
    for _ in range(9):
        steps = np.cumsum(rng.normal(0, 5, (8, 2)), axis=0) + rng.uniform(0, PIXELS, 2)
        canvas.line([tuple(step) for step in steps], 140, 1)
    return np.asarray(image) / 255
