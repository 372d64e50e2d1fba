"""Sphinx's settings for `make book`. No cell is run, and no page asks another host for anything."""

from importlib.metadata import version as version_of
from pathlib import Path

from jupyter_server_mathjax.app import STATIC_ASSETS_PATH

project = "Scaling Deep Learning with Horovod"
author = "the authors of the course"
release = version = version_of("hvdcourse")
language = "en"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]

# The outputs are those that are stored in the notebooks.
nb_execution_mode = "off"
nb_merge_streams = True
# A stored page shows a picture in the place of a widget, and so needs no widgets from a CDN.
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 4
# MyST's settings are for MathJax 3; the one that the course installs, for its notebooks, is 2.7.
myst_update_mathjax = False
mathjax_path = "MathJax.js?config=TeX-AMS-MML_HTMLorMML-full,Safe"
mathjax2_config = {"messageStyle": "none", "tex2jax": {"inlineMath": [["\\(", "\\)"]]}}

autodoc_member_order = "bysource"
autodoc_typehints = "none"

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = [str(Path(__file__).parent / "_static"), str(STATIC_ASSETS_PATH)]
html_css_files = ["book.css"]
html_js_files = ["book.js"]
html_copy_source = False
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    # The menu has a search field already.
    "navbar_persistent": [],
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "extra_footer": "Text and figures: CC BY 4.0. Code: Apache-2.0.",
}
