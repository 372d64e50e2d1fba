"""Text alternatives of the plots in the lessons: what the function says that drew them."""

import re
from importlib import import_module
from pkgutil import iter_modules

import nbformat

from hvdcourse import plots

CALLED = re.compile(r"([\w.]+)\(")
FUNCTION = re.compile(r"^def (\w+)\(.*\n(?:(?:[ )].*)?\n)*", re.MULTILINE)


def captions() -> dict[str, str]:
    """Return what the functions of ``hvdcourse.plots`` draw, by the names that cells call."""
    known = {}
    for module in iter_modules(plots.__path__):
        functions = vars(import_module(f"{plots.__name__}.{module.name}"))
        for name, function in functions.items():
            if name.startswith(("plot_", "play_")):
                summary = " ".join(function.__doc__.partition("\n\n")[0].split())
                caption = re.sub(r"^(Draw|Show) |\.$", "", summary)
                known[name] = known[f"{module.name}.{name}"] = caption
    return known


def describe_pictures(cell: nbformat.NotebookNode, heading: str, known: dict[str, str]) -> None:
    """Give a code cell's pictures a text alternative, and note the functions in it that draw.

    Args:
        cell: the cell; MyST takes one alternative for all its pictures.
        heading: what it stands below.
        known: what functions draw, by name.
    """
    for function in FUNCTION.finditer(cell.source):
        if inside := drawn_in(function[0], known):
            known[function[1]] = inside[-1]
    pictures = sum("image/png" in output.get("data", {}) for output in cell.outputs)
    drawn = drawn_in(cell.source, known)[-pictures:]
    if pictures and not drawn:
        raise SystemExit(f"error: no function of hvdcourse.plots drew the picture in {heading!r}")
    alternative = f"Plot in the section “{heading}”: {'; '.join(drawn)}"
    cell.metadata["mystnb"] = {"image": {"alt": alternative}}


def drawn_in(code: str, known: dict[str, str]) -> list[str]:
    """Return what the known functions draw that are called in some code, in their order."""
    return [known[name] for name in CALLED.findall(code) if name in known]
