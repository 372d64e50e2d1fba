"""What learners play with: the states behind the controls, and what the controls do to them."""

import base64
from io import BytesIO

import ipywidgets
import numpy as np
import pytest
from PIL import Image

from hvdcourse.errors import BadInput
from hvdcourse.plots import interactive
from hvdcourse.plots.messages import draw_collective, draw_ring, ring_frames
from hvdcourse.simulate.collectives import collective
from hvdcourse.study.condition import Condition

WIDGET = "application/vnd.jupyter.widget-view+json"
PLAYS = [
    interactive.play_ring,
    interactive.play_collectives,
    interactive.play_schedule,
    interactive.play_batch_size,
    interactive.play_scaling,
]


@pytest.mark.parametrize("ranks", [2, 4, 6])
def test_a_number_on_its_way_leaves_one_rank_and_changes_the_next(ranks):
    frames = ring_frames(ranks)
    assert len(frames) == 1 + 4 * (ranks - 1)
    for sending, arrived in zip(frames[1::2], frames[2::2], strict=True):
        assert sorted(sender for sender, _, _ in sending.moving) == list(range(ranks))
        for sender, chunk, value in sending.moving:
            assert sending.state.held[sender, chunk] == value
            assert ((sender + 1) % ranks, chunk) in arrived.state.arrived
        assert not arrived.moving
    assert f"has sent {2 * ranks - 2} of {2 * ranks - 2} messages" in frames[-1].words


def texts(figure):
    (axes,) = figure.axes
    return [text.get_text() for text in axes.texts]


def test_the_drawing_of_the_ring_shows_what_is_held_and_what_moves():
    frame = ring_frames(4)[3]
    figure, words = draw_ring(frame)
    shown = texts(figure)
    assert [t for t in shown if t.isdigit()] == [
        *map(str, frame.state.held.flat),
        *(str(value) for _, _, value in frame.moving),
    ]
    assert "rank 3: 4, 8, 21, 16" in words


def test_the_drawing_of_a_collective_shows_what_is_held_before_and_after():
    shown = collective("broadcast", 4)
    for when, rows in (("before", shown.before), ("after", shown.after)):
        figure, words = draw_collective(shown, when)
        drawn = [text for text in texts(figure) if text.isdigit()]
        assert drawn == [str(value) for row in rows for value, _ in row]
        assert words.startswith(f"{when} broadcast")


@pytest.mark.parametrize(
    ("ranks", "warmup", "epochs"), [(8, 5, 30), (1, 3, 8), (4, 0, 7), (2, 7, 7)]
)
def test_the_schedule_is_that_of_the_studies(ranks, warmup, epochs):
    plan = Condition(
        ranks=ranks,
        learning_rate=0.05,
        scaling="linear",
        warmup_epochs=warmup,
        schedule="step",
        epochs=epochs,
    )
    count = interactive.STEPS_PER_EPOCH
    expected = [plan.rate_at(step, count) for step in range(count * epochs)]
    np.testing.assert_allclose(interactive.schedule(0.05, ranks, warmup, epochs), expected)


def test_the_slider_of_the_warmup_may_stand_beyond_the_training():
    _, words = interactive.draw_schedule(0.1, 4, warmup_epochs=20, epochs=10)
    assert words.startswith("500 steps; the rate rises from 0.1 to 0.39")
    assert "shorten it" in words


def test_the_schedule_says_by_what_its_first_step_raises_the_rate():
    _, words = interactive.draw_schedule(0.05, 8, warmup_epochs=7, epochs=30)
    assert words.endswith("at the first step by 2.0 %")
    _, words = interactive.draw_schedule(0.05, 8, warmup_epochs=0, epochs=30)
    assert words.endswith("from 0.4 to 0.4")


def test_at_the_critical_batch_steps_and_images_are_twice_the_fewest():
    assert interactive.batch_size_costs(512.0, 512.0) == (2, 2)
    steps, images = interactive.batch_size_costs(interactive.BATCHES, 1024)
    np.testing.assert_allclose((steps - 1) * (images - 1), 1)
    _, words = interactive.draw_batch_size(batch=32, per_rank=32, critical_batch=32)
    assert words.startswith("B = 32 on 1 rank: 2.00 times the fewest steps, 2.00 times")


class Page:
    """Keeps what is displayed, as a notebook's page does: an update takes an output's place."""

    def __init__(self):
        self.outputs = []

    def display(self, bundle, raw=False, display_id=None):
        assert raw
        self.outputs.append(bundle)
        return self

    def update(self, bundle, raw=False):
        assert raw
        self.outputs[-1] = bundle


@pytest.fixture
def page(monkeypatch):
    """A page that the controls and the figures are displayed on."""
    page = Page()
    monkeypatch.setattr(interactive, "display", page.display)
    return page


def widget_of(bundle):
    return ipywidgets.widgets.widget._instances[bundle[WIDGET]["model_id"]]


@pytest.mark.parametrize("play", PLAYS)
def test_a_static_page_has_the_figure_and_words_for_the_controls(play, page):
    play()
    controls, figure = page.outputs
    assert controls["text/plain"].startswith("(Run this cell to change the figure with controls: ")
    assert Image.open(BytesIO(base64.b64decode(figure["image/png"]))).width > 300
    assert figure["text/plain"]


@pytest.mark.parametrize(
    ("play", "name", "value", "words"),
    [
        (interactive.play_ring, "moment", 12, "has sent 6 of 6 messages"),
        (interactive.play_collectives, "collective", "alltoall", "after alltoall"),
        (interactive.play_schedule, "ranks", 4, "from 0.05 to 0.2"),
        (interactive.play_batch_size, "batch B", 4096, "1.25 times the fewest steps"),
        (interactive.play_scaling, "GPUs", 16384, "vgg16 on 16,384 GPUs"),
        (interactive.play_scaling, "scaling", "strong", "vgg16 on 512 GPUs"),
    ],
)
def test_a_control_draws_the_figure_anew(play, name, value, words, page):
    play()
    controls, before = page.outputs
    children = widget_of(controls).children
    (control,) = (child for child in children if child.description == name)
    control.value = value
    assert page.outputs[0] is controls
    after = page.outputs[1]
    assert words in after["text/plain"]
    assert after["image/png"] != before["image/png"]


@pytest.mark.parametrize("batch", [0, -1, "large", None])
def test_a_critical_batch_is_a_number_above_0(batch):
    with pytest.raises(BadInput, match="critical_batch must be"):
        interactive.play_batch_size(batch)
