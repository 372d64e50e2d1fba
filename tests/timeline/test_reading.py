"""The reader of timelines: on what Horovod wrote, and on files that are broken or others'."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt

from hvdcourse.errors import BadInput
from hvdcourse.paths import NOTEBOOKS, SOLUTIONS
from hvdcourse.plots.timeline import plot_step, plot_steps
from hvdcourse.timeline.events import BACKWARD, CLOCK, FORWARD, add_passes, find_spans, read_events
from hvdcourse.timeline.reading import read_timeline

RECORDED = {
    name: NOTEBOOKS / "recorded" / f"timeline_{name}.json.gz"
    for name in ("healthy", "unfused", "straggler")
}
TEXTS = {name: gzip.decompress(path.read_bytes()).decode() for name, path in RECORDED.items()}
HEAD = {"name": "process_name", "ph": "M", "pid": 0, "args": {CLOCK: 10**15}}


@pytest.fixture
def written(tmp_path):
    """Write a text, or events, into a file and return its path."""

    def write(content):
        path = tmp_path / "timeline.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def gradient(name: str, number: int, ready: tuple[int, int], sending: int, sent: int) -> list[dict]:
    """Return the events of one gradient, in microseconds, as Horovod writes them."""

    def event(phase, moment, **more):
        return {"ph": phase, "ts": moment, "pid": number, **more}

    first, last = sorted(ready)
    return [
        {"name": "process_name", "ph": "M", "pid": number, "args": {"name": name}},
        event("B", first, name="NEGOTIATE_ALLREDUCE"),
        *(event("X", moment, name=str(rank), dur=0) for rank, moment in enumerate(ready)),
        event("E", last),
        event("B", last, name="ALLREDUCE"),
        event("B", sending, name="MPI_ALLREDUCE"),
        event("E", sent),
        event("E", sent + 10, args={"dtype": "float32", "shape": "[3, 4]"}),
    ]


TWO_STEPS = [
    HEAD,
    *gradient("kernel", 1, (1000, 3000), 5000, 9000),
    *gradient("bias", 2, (2000, 4000), 5001, 9001),
    *gradient("kernel", 1, (21000, 20000), 22000, 23000),
    *gradient("bias", 2, (25000, 24000), 25000, 26000),
]


def test_the_numbers_of_a_small_timeline_are_those_that_stand_in_it(written):
    timeline = read_timeline(written(TWO_STEPS))
    first, second = timeline.steps.to_dict("records")
    assert (first["gradients"], first["allreduces"], first["fusion_ratio"]) == (2, 1, 2)
    assert (second["gradients"], second["allreduces"], second["fusion_ratio"]) == (2, 2, 1)
    assert (first["negotiation_ms"], second["negotiation_ms"]) == (2, 1)
    assert (first["straggler"], first["delay_ms"]) == (1, 2)
    assert (second["straggler"], second["delay_ms"]) == (0, 1)
    assert first["sending_ms"] == pytest.approx(4.001)
    # Without marks of the passes, rank 0 computes until its last gradient is ready.
    assert first["exposed_ms"] == pytest.approx(9.011 - 2)
    assert set(timeline.gradients["bytes"]) == {48}


def test_passes_that_are_added_end_the_computing(written):
    path = written(TWO_STEPS)
    add_passes(path, [(1e9 + 0.0001, 1e9 + 0.001, 1e9 + 0.007), (1e9 + 0.015, 1e9 + 0.02, 1e9 + 1)])
    steps = read_timeline(path).steps
    assert list(steps["computed"].round(3)) == [7, 1000]
    # What ends before the backward pass does is hidden.
    assert list(steps["exposed_ms"].round(3)) == [2.011, 0]
    assert sum(span.name in (FORWARD, BACKWARD) for span in find_spans(read_events(path))) == 4


def test_without_marks_of_the_ranks_there_is_no_straggler(written):
    cached = [event for event in TWO_STEPS if event.get("ph") != "X"]
    steps = read_timeline(written(cached)).steps
    assert set(steps["straggler"]) == {-1}
    assert steps["delay_ms"].isna().all()
    assert list(steps["negotiation_ms"]) == [2, 1]


def test_the_recorded_illnesses_show_in_the_numbers():
    steps = {name: read_timeline(path).steps for name, path in RECORDED.items()}
    exposed = {name: table["exposed_ms"].median() for name, table in steps.items()}
    assert exposed["healthy"] < 10 < 40 < min(exposed["unfused"], exposed["straggler"])
    assert set(steps["unfused"]["fusion_ratio"]) == {1.0}
    assert steps["healthy"]["fusion_ratio"].min() > 2
    assert set(steps["straggler"]["straggler"]) == {1}
    # Rank 1 slept for 40 ms in each step.
    assert 37 < steps["straggler"]["delay_ms"].median() < 50


def test_the_moments_of_each_gradient_come_in_their_order():
    for path in RECORDED.values():
        table = read_timeline(path).gradients
        order = ["first_ready", "negotiated", "sending", "sent", "done"]
        assert (np.diff(table[order], axis=1) >= 0).all()
        fused = table.dropna(subset="copied_in")
        order = ["negotiated", "copying_in", "copied_in", "sending", "sent", "copying_out", "done"]
        assert (np.diff(fused[order], axis=1) >= 0).all()
        assert (table.groupby("step")["name"].nunique() == 20).all()
        assert set(table["bytes"]) == {256 * 256 * 4}


def test_metrics_that_are_averaged_between_the_steps_are_no_gradients(written):
    events, names = [], [f"layer_{number}" for number in range(1, 5)]
    for step in range(15):
        start = 10000 * step
        for number, name in enumerate(names, start=1):
            events += gradient(name, number, (start, start), start + 1000, start + 2000)
        # After each epoch of 5 steps, several metrics of one name.
        for moment in (3000, 4000, 5000) if step % 5 == 4 else ():
            metric = start + moment
            events += gradient("metric", 9, (metric, metric), metric, metric + 100)
    timeline = read_timeline(written([HEAD, *events]))
    assert list(timeline.steps["gradients"]) == [4] * 15
    assert set(timeline.gradients["name"]) == set(names)


def test_where_only_the_first_step_has_marks_the_others_have_their_exposed_communication(written):
    cached = [event for event in TWO_STEPS if event.get("ph") != "X" or event["ts"] < 10000]
    steps = read_timeline(written(cached)).steps
    assert list(steps["straggler"]) == [1, -1]
    # From when the first rank had its last gradient: at 2 and at 24 ms.
    assert list(steps["exposed_ms"].round(3)) == [7.011, 2.01]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.77, 0.9])
def test_a_file_that_breaks_off_is_read_up_to_there(written, share):
    # The passes stand at the end: without them the rest of Horovod's own file breaks off.
    text = TEXTS["healthy"]
    cut = read_timeline(written(text[: int(share * len(text))])).gradients
    whole = read_timeline(RECORDED["healthy"]).gradients
    assert 0 < len(cut) < len(whole) or share > 0.7
    merged = cut.merge(whole, on=["step", "name"], suffixes=("", "_whole"))
    assert len(merged) == len(cut)
    assert (merged["sent"] == merged["sent_whole"]).all()


NO_LIST = "is no timeline: a timeline is a JSON list of events"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty: Horovod fills it from time to time"),
        ("step 1: 20 ms\n", NO_LIST),
        ({"traceEvents": []}, NO_LIST),
        ("[{'ph': 1}]", NO_LIST),
        ("[1, 2]", NO_LIST),
        ([{"ph": "X", "name": "MatMul", "ts": 1, "dur": 2}], "a trace, but not of Horovod"),
        ([HEAD], "has no allreduce from beginning to end"),
        (TEXTS["healthy"].replace('"ts": ', '"ts" ', 40), NO_LIST),
    ],
    ids=["empty", "a log", "another list", "no JSON", "numbers", "TensorFlow's", "head", "damaged"],
)
def test_a_file_that_is_no_timeline_is_refused_with_the_reason(written, content, said):
    with pytest.raises(BadInput, match=said):
        read_timeline(written(content))


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(BadInput, match=r"cannot be read: .*No such file"):
        read_timeline(tmp_path / "none.json")
    binary = tmp_path / "model.json"
    binary.write_bytes(b"\x89HDF\xff")
    with pytest.raises(BadInput, match="a timeline is text, and this is not"):
        read_timeline(binary)
    packed = tmp_path / "timeline.json.gz"
    packed.write_bytes(RECORDED["healthy"].read_bytes()[:2000])
    with pytest.raises(BadInput, match="cannot be read"):
        read_timeline(packed)


def test_a_step_is_drawn_with_a_row_for_each_gradient_and_its_bars(written):
    timelines = {name: read_timeline(path) for name, path in RECORDED.items()}
    figure = plot_steps(timelines)
    for axes, (name, timeline) in zip(figure.axes, timelines.items(), strict=True):
        assert axes.get_title("left") == name
        assert len(axes.patches) > 3 * 20
        assert axes.get_xlim()[1] > timeline.steps["exposed_ms"].iloc[1:-1].median()
    # The passes and the marks of the ranks can be absent.
    bare = read_timeline(written([event for event in TWO_STEPS if event.get("ph") != "X"]))
    (axes,) = plot_step(bare).axes
    assert axes.get_title("left").startswith("step 1: ")
    plt.close("all")


def test_the_line_that_lesson_5_names_reads_its_recordings():
    # Other recordings lie beside them.
    command = [sys.executable, SOLUTIONS / "timeline.py", "--folder", NOTEBOOKS / "recorded"]
    output = subprocess.check_output(command, text=True, timeout=60)
    assert [line.split(".")[0] for line in output.splitlines() if "medians" in line] == [
        f"timeline_{name}" for name in sorted(RECORDED)
    ]
