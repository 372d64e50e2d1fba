"""How verdicts and scores are shown: as the same table in a terminal and in a notebook."""

import io
from abc import ABC, abstractmethod
from typing import Any

from rich.console import Console, RenderableType
from rich.jupyter import JUPYTER_HTML_FORMAT

# Each has a contrast of more than 4 with white and with JupyterLab's dark background. They only
# repeat what the words say.
MET, PARTLY, UNMET = "bold #188a3a", "bold #a06c00", "bold #db3b2e"

# In the metadata of a notebook's output, for programs that read it: {"passed": true or false}.
OUTPUT_METADATA = "hvdcourse"

_NOTEBOOK_COLUMNS = 80  # Fits half of a screen, with the script in the other half.


class Displayed(ABC):
    """A verdict or score that a cell of a notebook, and rich's ``Console.print``, can show."""

    @property
    @abstractmethod
    def passed(self) -> bool:
        """Whether nothing is left to do."""

    @abstractmethod
    def __rich__(self) -> RenderableType:
        """Return what rich shows."""

    def in_notebook(self) -> tuple[RenderableType, str]:
        """Return what rich shows in a notebook, and HTML to put below it."""
        return self, ""

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        console = Console(
            file=io.StringIO(),
            record=True,
            width=_NOTEBOOK_COLUMNS,
            color_system="truecolor",
            force_jupyter=False,
            highlight=False,
        )
        shown, below = self.in_notebook()
        console.print(shown)
        console.print()  # Or a scroll bar hides what hangs below the letters of the last line.
        html = console.export_html(inline_styles=True, code_format=JUPYTER_HTML_FORMAT)
        return (
            {"text/plain": repr(self), "text/html": html + below},
            {OUTPUT_METADATA: {"passed": self.passed}},
        )
