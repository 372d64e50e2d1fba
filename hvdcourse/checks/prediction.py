"""A prediction: a learner enters it before a run, and sees it beside the result."""

import re
from collections.abc import Sequence
from typing import Any

import ipywidgets
from IPython.display import DisplayHandle, display

from hvdcourse.checks.progress import keeping, read_kept

_FILE = "predictions.json"
_LAYOUT = ipywidgets.Layout(width="auto")


class Prediction:
    """What a learner expects to see: a number, or one of some options.

    What is entered is kept with the learner's progress, and is there again the next time.
    """

    def __init__(self, question: str, options: Sequence[str], unit: str) -> None:
        self.question, self.options, self.unit = question, list(options), unit
        self.answer = read_kept(_FILE).get(question)
        if self.options and self.answer not in self.options:
            self.answer = None
        self.shown: DisplayHandle | None = None
        self.note = ipywidgets.Label(self._kept())
        self.field = self._field()
        self.field.observe(self._enter, names="value")

    def compare(self, result: float | str) -> None:
        """Print what was predicted and what came out.

        Args:
            result: a number in the prediction's unit, or the option that is right.
        """
        if self.answer is None:
            print(f"The result: {self._told(result)}. You have entered no prediction.")
            return
        if self.shown is not None:
            # A field is gone with its kernel: a saved notebook would show an error in its place.
            self.shown.update({"text/plain": repr(self)}, raw=True)
        if self.answer == result:
            print(f"The result: {self._told(result)}, as you predicted.")
        else:
            print(f"You predicted {self._told(self.answer)}. The result: {self._told(result)}.")

    def _ipython_display_(self) -> None:
        field = ipywidgets.HBox([self.field, ipywidgets.Label(self.unit)])
        widget = ipywidgets.VBox([ipywidgets.HTMLMath(self.question), field, self.note])
        bundle = widget._repr_mimebundle_()
        # Static pages, which have no widgets, show the text.
        self.shown = display({**bundle, "text/plain": repr(self)}, raw=True, display_id=True)

    def __repr__(self) -> str:
        lines = [f"({'x' if option == self.answer else ' '}) {option}" for option in self.options]
        if self.answer is None:
            lines = lines or [f"____ {self.unit}".rstrip()]
            return "\n".join([self.question, *lines, "(Run this cell to answer.)"])
        lines = lines or [self._told(self.answer)]
        return "\n".join([self.question, *lines, "(Your prediction. Run this cell to change it.)"])

    def _field(self) -> ipywidgets.DOMWidget:
        if self.options:
            return ipywidgets.RadioButtons(
                options=self.options, value=self.answer, layout=_LAYOUT, description=""
            )
        value = "" if self.answer is None else f"{self.answer:g}"
        return ipywidgets.Text(value, placeholder="a number", continuous_update=False)

    def _enter(self, change: dict[str, Any]) -> None:
        try:
            text = change["new"].removesuffix(self.unit)
            answer = change["new"] if self.options else _number(text)
        except ValueError:
            self.note.value = f"A number is needed, such as 1.5; {change['new']!r} is not one."
            return
        self.answer = answer
        with keeping(_FILE) as predictions:
            predictions[self.question] = answer
        self.note.value = self._kept()

    def _kept(self) -> str:
        if self.answer is None:
            return ""
        answer = "" if self.options else f", {self._told(self.answer)},"
        return f"Your prediction{answer} is kept: go on with the next cell."

    def _told(self, value: float | str) -> str:
        if isinstance(value, str):
            return value
        digits = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
        return f"{digits} {self.unit}".rstrip()


def predict(question: str, options: Sequence[str] = (), *, unit: str = "") -> Prediction:
    """Ask for a prediction, in a notebook with a field to enter it.

    Args:
        question: what the learner predicts; it names the prediction, too.
        options: the answers to choose from; without any, the answer is a number.
        unit: of the number.

    Returns:
        The prediction, for :meth:`Prediction.compare` when the result is there.
    """
    prediction = Prediction(question, options, unit)
    display(prediction)
    return prediction


def _number(text: str) -> float:
    """Return the number of a text: 16,384 is in the thousands, and 1,8 between 1 and 2."""
    in_thousands = re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d*)?", text.strip())
    return float(text.replace(",", "" if in_thousands else "."))
