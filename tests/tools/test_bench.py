"""The network of `make bench`, and each form of its training on two ranks."""

import subprocess
import sys

import numpy as np
import pytest

from hvdcourse.launch.run import run, run_quickly
from hvdcourse.machine.ports import free_ports
from hvdcourse.paths import PROJECT

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(200), pytest.mark.usefixtures("nothing_left")]
TOOLS = PROJECT / "tools"
COUNT = 32


@pytest.fixture
def tools(monkeypatch):
    """Let the test import from `tools/` and from `tools/bench/`."""
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.syspath_prepend(str(TOOLS / "bench"))


@pytest.fixture
def images(tmp_path):
    random = np.random.default_rng(0)
    path = tmp_path / "images.npz"
    pixels = random.integers(0, 256, (COUNT, 32, 32, 3), np.uint8)
    np.savez(path, images=pixels, labels=random.integers(0, 10, COUNT))
    return path


def test_the_network_has_the_stated_shapes_and_size(tools):
    from resnet import bottleneck_resnet

    model = bottleneck_resnet()
    assert model.count_params() == 467_082
    shapes = {layer.output_shape[1:] for layer in model.layers[1:]}
    assert {(16, 16, 64), (8, 8, 64), (8, 8, 256), (4, 4, 128), (4, 4, 512), (10,)} <= shapes
    assert not any("batch_norm" in layer.name for layer in model.layers)
    assert bottleneck_resnet((16, 16, 1), classes=7).output_shape == (None, 7)


def test_the_fast_layers_compute_what_keras_computes(tools):
    import tensorflow as tf
    from fast_layers import FastConv2D
    from resnet import bottleneck_resnet

    images = tf.random.stateless_uniform((8, 32, 32, 3), [0, 1])

    def outputs_and_gradients(model):
        with tf.GradientTape() as tape:
            tape.watch(images)
            outputs = model(images)
            score = tf.reduce_sum(outputs**2)
        return [outputs, *tape.gradient(score, [images, *model.trainable_variables])]

    expected = outputs_and_gradients(bottleneck_resnet())
    found = outputs_and_gradients(bottleneck_resnet(conv2d=FastConv2D))
    for one, other in zip(expected, found, strict=True):
        scale = np.abs(one).max()
        np.testing.assert_allclose(other / scale, one / scale, atol=1e-5)


@pytest.mark.parametrize(
    ("script", "options"),
    [
        ("naive.py", {}),
        ("fast.py", {}),
        ("fast.py", {"no_allreduce": True}),
        ("fast.py", {"bfloat16": True}),
        ("multiworker.py", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_two_ranks_train_in_every_form(script, options, images, tools):
    ports = ",".join(map(str, free_ports(2)))
    options = {"images": images, "batch_size": 16, "ports": ports, **options}
    # One form is started as in the benchmark; the others share TensorFlow's import.
    start = run if script == "multiworker.py" else run_quickly
    result = start(TOOLS / "bench" / script, 2, quiet=True, epochs=2, **options)
    for rank in result.ranks:
        assert [row["epoch"] for row in rank.metrics] == [1, 2]
        assert all(row["images_per_second"] > 0 for row in rank.metrics)
    first, second = (rank.evidence[-1]["value"] for rank in result.ranks)
    assert np.allclose(first, second, rtol=1e-4) is not options.get("no_allreduce", False)


def test_the_ratios_are_judged_by_their_median(tools):
    from bench_cifar import FAST, NAIVE, ONE_CORE, ONE_PROCESS, Measure, aims_table
    from rich.console import Console

    def measures(*throughputs, others=0.0):
        return [Measure(value, 1.0, others) for value in throughputs]

    console = Console(width=120)
    found = {FAST: measures(200, 180, 100), NAIVE: measures(100, 100, 100)}
    with console.capture() as capture:
        found[ONE_CORE] = measures(100, 100, 100)
        found[ONE_PROCESS] = measures(100, 100, 100, others=0.7)
        console.print(aims_table(found))
    rows = [line.split("│") for line in capture.get().splitlines() if "│" in line]
    cells = {row[1].strip(): [cell.strip() for cell in row[2:5]] for row in rows}
    efficiency = "efficiency: 2 ranks over twice 1 rank on 1 core"
    assert cells[efficiency] == ["0.90 (0.50 to 1.00)", "0.95", "not reached"]
    assert cells["over the naive form"] == ["1.80 (1.00 to 2.00)", "1.5", "reached"]
    disturbed = cells["over one process that owns both cores"]
    assert disturbed == ["1.80 (1.00 to 2.00)", "1", "unclear: others took 0.7 cores"]
    assert cells["over MultiWorkerMirroredStrategy"][0] == "not measured"


def test_the_benchmark_says_so_where_its_images_are_random(tmp_path, tools, monkeypatch):
    from bench_cifar import write_images

    monkeypatch.setenv("HVDCOURSE_DATA", str(tmp_path / "none"))
    path = tmp_path / "images.npz"
    assert "RANDOM" in write_images(None, 20, path)
    with np.load(path) as file:
        assert file["images"].shape == (20, 32, 32, 3)
        assert file["labels"].shape == (20,)


def test_the_benchmark_trains_on_a_folder_of_images(tmp_path, tools):
    from bench_cifar import write_images

    from hvdcourse.data.digit_files import write_digits

    write_digits(tmp_path / "folder", train=60, test=10, pixels=32)
    path = tmp_path / "images.npz"
    assert "20 images of" in write_images(tmp_path / "folder", 20, path)
    with np.load(path) as file:
        assert file["images"].dtype == np.uint8
        assert len(set(file["labels"].tolist())) > 1


def test_the_benchmark_has_a_help_text():
    command = [sys.executable, str(TOOLS / "bench_cifar.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "--repeats" in done.stdout
