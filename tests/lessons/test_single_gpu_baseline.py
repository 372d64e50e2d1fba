"""The baseline of lesson 2: what it prints and what it records are the same figures."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hvdcourse import run
from hvdcourse.data.digit_files import write_digits
from hvdcourse.paths import SOLUTIONS

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def baseline(tmp_path_factory):
    record = tmp_path_factory.mktemp("baseline") / "record.json"
    record.write_text("half of an older reco")
    options = {"epochs": 4, "record": record}
    result = run("single_gpu_baseline.py", np=1, folder=SOLUTIONS, quiet=True, **options)
    return result, json.loads(record.read_text()), record


def test_it_prints_what_it_records(baseline):
    result, record, _ = baseline
    (output,) = result.output
    assert len([line for line in output if line.startswith("epoch ")]) == 4
    history = record["history"]
    assert f"{history['images_per_second'][1]:.0f} images/s" in output[1]
    assert f"{sum(history['seconds'][:2]):.2f} s of training so far" in output[1]
    accuracy, seconds = record["test_accuracy"], record["training_seconds"]
    assert output[-1] == f"test accuracy {accuracy:.3f} after {seconds:.2f} s of training"
    for name in "0123456789":
        row = record["by_class"][name]
        line = next(line for line in output if line.startswith(f"{name} "))
        assert line.split()[1:3] == [f"{row['precision']:.3f}", f"{row['recall']:.3f}"]


def test_it_learns_and_its_figures_fit_together(baseline):
    result, record, _ = baseline
    assert record["test_accuracy"] > 0.95
    assert record["history"]["images_per_second"] == result.history["images_per_second"]
    rows = [record["by_class"][name] for name in "0123456789"]
    right = sum(row["recall"] * row["support"] for row in rows)
    assert right / sum(row["support"] for row in rows) == pytest.approx(record["test_accuracy"])


def test_the_record_is_replaced_as_a_whole(baseline):
    _, _, record = baseline
    assert [path.name for path in record.parent.iterdir()] == ["record.json"]


def test_plain_python_trains_on_a_folder_of_images(tmp_path: Path):
    write_digits(tmp_path / "images", train=60, test=40, pixels=8)
    arguments = ["--data", "images", "--epochs", "1", "--record", "record.json"]
    script = SOLUTIONS / "single_gpu_baseline.py"
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "images/s" in done.stdout
    record = json.loads((tmp_path / "record.json").read_text())
    assert sum(record["by_class"][str(n)]["support"] for n in range(10)) == 40
