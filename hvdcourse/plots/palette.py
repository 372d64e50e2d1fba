"""The colors of all plots and figures, which people with any color vision can tell apart.

The colored ones are those of Okabe and Ito, https://jfly.uni-koeln.de/color/, without their black
and yellow.
"""

BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
SKY_BLUE = "#56B4E9"
ORANGE = "#E69F00"
# In the order in which the curves of a plot take them.
COLORS = (BLUE, VERMILION, GREEN, PURPLE, SKY_BLUE, ORANGE)
# Ranks 0 to 3, wherever a figure shows them.
RANK_COLORS = (BLUE, ORANGE, GREEN, PURPLE)
# Pale areas that have dark text on them.
TINTS = (
    "#DCE9F5", "#FBE3D0", "#D6EFE4", "#F6E1EE", "#E4E4E4", "#FFF3C4", "#D9F0FB", "#EFE6DA",
)  # fmt: skip

# From dark to light: texts, what is combined, remarks, lines behind the curves, areas behind all.
INK = "#1F2933"
BLACK = "#222222"
SLATE = "#3B4252"
QUIET = "#5F6B7A"
DARK_GRAY = "#666666"
GRAY = "#999999"
LINE = "#C5CCD6"
LIGHT_GRAY = "#DDDDDD"
PANEL = "#F5F7FA"
WHITE = "#FFFFFF"
