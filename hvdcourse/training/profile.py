"""TensorFlow's own profile of a step: which operations take the time."""

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

PICOSECONDS_PER_MILLISECOND = 1e9


def operation_times(step: Callable[[], Any]) -> dict[str, float]:
    """Run a step under TensorFlow's profiler; return milliseconds by kind of operation.

    The longest comes first. Operations that run beside each other count in full, so that the sum
    can be more than the step took. Call the step once before: its first call also builds the graph.
    See https://www.tensorflow.org/guide/profiler.
    """
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            step()
        times: Counter[str] = Counter()
        for file in Path(folder).rglob("*.xplane.pb"):
            space = xplane_pb2.XSpace.FromString(file.read_bytes())
            for plane in space.planes:
                for event in (event for line in plane.lines for event in line.events):
                    # An operation of a graph is noted as "its name:its kind".
                    _, *kind = plane.event_metadata[event.metadata_id].name.split(":")
                    if len(kind) == 1 and kind[0].isidentifier():
                        times[kind[0]] += event.duration_ps / PICOSECONDS_PER_MILLISECOND
    return dict(times.most_common())
