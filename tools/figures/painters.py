"""The contact sheet of the painters' pictures: some of each painter, under each other."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from hvdcourse.data.painters import PAINTERS
from hvdcourse.data.painting import PIXELS, paint
from hvdcourse.plots.palette import BLACK

PICTURES_A_ROW, GAP, NAME_WIDTH, FONT_SIZE = 9, 4, 170, 15


def draw_painters() -> Image.Image:
    """Draw the first training pictures of each painter, beside the name and the counts."""
    pitch = PIXELS + GAP
    size = (NAME_WIDTH + PICTURES_A_ROW * pitch, GAP + len(PAINTERS) * pitch)
    sheet = Image.new("RGB", size, "white")
    canvas, font = ImageDraw.Draw(sheet), ImageFont.load_default(FONT_SIZE)
    for row, (name, painter) in enumerate(PAINTERS.items()):
        top = GAP + row * pitch
        left = f"{name}\n{painter.train} + {painter.test}"
        canvas.text((10, top + 14), left, BLACK, font, spacing=6)
        for column in range(PICTURES_A_ROW):
            picture = paint(painter, np.random.default_rng([row, 0, column]))
            sheet.paste(picture, (NAME_WIDTH + column * pitch, top))
    return sheet
