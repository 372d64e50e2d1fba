"""Grids of runs on real ranks: what is recorded, and what an interruption or an error leaves."""

import json
import re
import shlex
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from watching import HVDCOURSE, started_processes, wait_for, watched

from hvdcourse.errors import BadInput
from hvdcourse.launch.result import RunFailed
from hvdcourse.launch.run import run_quickly
from hvdcourse.study import grid as study_module
from hvdcourse.study.condition import Condition
from hvdcourse.study.grid import WORKER, read_grid, study
from hvdcourse.study.records import key_of, read_records
from hvdcourse.study.tables import summary
from hvdcourse.study.worker import weights_file

# One worker of xdist makes the records that most of these read.
pytestmark = [
    pytest.mark.ranks,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("test_grid"),
]

SMALL = Condition(images=64, epochs=2, width=1, learning_rate=0.5)
# The same images in every step: a shard is dealt out of one order. Three test images are two and
# one on two ranks, so that a mean of the ranks' means would be another.
ALONE = replace(SMALL, hold_out=3, keep_weights=True)
GRID = {
    "alone": ALONE,
    "together": replace(ALONE, ranks=2, batch_size=16),
    "measured": replace(ALONE, ranks=2, batch_size=16, measure_noise=True),
    "diverging": replace(SMALL, learning_rate=1e30),
    "synchronous": replace(SMALL, batch_norm="sync"),
    "stopping": replace(SMALL, target=0.0, evaluate_every=1),
}
SEEDS = [0, 1]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """The file of a study of this grid."""
    path = tmp_path_factory.mktemp("study") / "records.jsonl"
    with watched():
        study(GRID, records=path, seeds=SEEDS, quiet=True)
    return path


@pytest.fixture
def runs(records):
    return {(run["condition"], run["seed"]): run for run in read_records(records).runs}


@pytest.fixture
def nothing_starts(monkeypatch):
    def train_runs(*arguments):
        raise AssertionError("ranks were started")

    monkeypatch.setattr(study_module, "train_runs", train_runs)


def test_every_run_has_one_record_with_all_that_is_needed_to_trust_it(records, runs):
    assert set(runs) == {(name, seed) for name in GRID for seed in SEEDS}
    assert len(records.read_text().splitlines()) == len(runs)
    for (name, seed), record in runs.items():
        condition = GRID[name]
        assert record["ranks"] == condition.ranks
        assert record["batch_size"] * condition.ranks == record["global_batch_size"] == 32
        assert record["command"].startswith(f"horovodrun -np {condition.ranks} --gloo python -m ")
        assert f'"seed": {seed}' in record["command"]
        assert set(record["versions"]) == {"python", "tensorflow", "horovod", "numpy"}
        assert record["cores"] >= 1
        assert record["data"]["name"] == "digits"
        assert len(record["data"]["fingerprint"]) == 16
        assert record["data"]["train_images"] == 64
        assert len(record["learning_rates"]) == record["steps"]
        assert record["images_per_second"] > 0
        for row in record["epochs"]:
            assert {"loss", "accuracy", "test_loss", "test_accuracy", "seconds"} <= set(row)


def test_a_finished_study_starts_nothing_and_returns_its_grid_in_its_order(records, nothing_starts):
    before = records.read_bytes()
    grid = {"renamed": GRID["together"], "alone": GRID["alone"], "twin": GRID["alone"]}
    found = study(grid, records=records, seeds=[1, 0, 1], quiet=True)
    assert [(run["condition"], run["seed"]) for run in found.runs] == [
        (name, seed) for name in grid for seed in (1, 0)
    ]
    assert records.read_bytes() == before


def test_two_ranks_train_as_one_does_with_their_global_batch(records, runs):
    for seed in SEEDS:
        alone, together = runs["alone", seed], runs["together", seed]
        assert [row["step"] for row in alone["epochs"]] == [2, 4]
        for mine, other in zip(alone["epochs"], together["epochs"], strict=True):
            assert mine["loss"] == pytest.approx(other["loss"], abs=1e-3)
            assert mine["accuracy"] == pytest.approx(other["accuracy"], abs=1e-6)
        first, second = (weights(records, record) for record in (alone, together))
        for name in first:
            np.testing.assert_allclose(first[name], second[name], rtol=1e-3, atol=1e-4)


def test_measuring_the_noise_leaves_the_training_as_it_is(records, runs):
    for seed in SEEDS:
        measured, ordinary = runs["measured", seed], runs["together", seed]
        for one, other in zip(measured["epochs"], ordinary["epochs"], strict=True):
            assert one["loss"] == pytest.approx(other["loss"], rel=1e-3)
        own, mean = np.array(measured["noise"]["own"]), np.array(measured["noise"]["mean"])
        assert len(own) == len(mean) == measured["steps"]
        # The length of a mean is at most the mean of the lengths, and less where these differ.
        assert (mean < own).all()


def test_other_seeds_give_other_weights(records, runs):
    first, second = (weights(records, runs["alone", seed]) for seed in SEEDS)
    assert max(np.abs(first[name] - second[name]).max() for name in first) > 0.1


def weights(records: Path, record: dict) -> dict[str, np.ndarray]:
    """Return what a run has left beside the records."""
    with np.load(records.with_name(record["weights"])) as file:
        return dict(file)


def test_test_images_count_alike_though_the_ranks_have_two_and_one(runs):
    for seed in SEEDS:
        for mine, other in zip(
            runs["alone", seed]["epochs"], runs["together", seed]["epochs"], strict=True
        ):
            assert mine["test_loss"] == pytest.approx(other["test_loss"], abs=1e-3)
            assert mine["test_accuracy"] == other["test_accuracy"]


def test_a_diverged_run_is_recorded_with_none_and_counted(records, runs):
    assert runs["diverging", 0]["epochs"][-1]["loss"] is None
    assert runs["diverging", 0]["epochs"][-1]["test_loss"] is None
    for line in records.read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    table = summary(read_records(records))
    assert list(table["diverged"]) == [2 * (name == "diverging") for name in table.index]
    assert list(table["averaged"]) == [2 * (name != "diverging") for name in table.index]


def test_a_run_that_reaches_its_target_ends_there(runs):
    record = runs["stopping", 0]
    assert (record["steps_to_target"], record["steps"], len(record["epochs"])) == (1, 1, 1)
    (row,) = record["epochs"]
    assert row["images_per_second"] * row["seconds"] == pytest.approx(32, rel=0.01)


@pytest.mark.parametrize("name", ["alone", "together"])
def test_the_recorded_command_does_the_same_run_again(name, runs, tmp_path, nothing_left):
    record = runs[name, 1]
    words = shlex.split(record["command"])
    assert words[:7] == [
        *("horovodrun", "-np", str(record["ranks"]), "--gloo"),
        *("python", "-m", "hvdcourse.study.worker"),
    ]  # fmt: skip
    path = tmp_path / "again.jsonl"
    if name == "alone":
        # The line as it stands, without this project's launcher.
        subprocess.run(record["command"], shell=True, cwd=tmp_path, check=True, timeout=120)
    else:
        arguments = [str(path) if word == path.name else word for word in words[7:]]
        run_quickly(WORKER, np=record["ranks"], arguments=arguments)
    (again,) = read_records(path).runs
    assert key_of(again) == key_of(record)
    assert again["epochs"][-1]["loss"] == pytest.approx(record["epochs"][-1]["loss"], abs=1e-3)


def test_runs_for_another_number_of_ranks_are_refused(runs, tmp_path, nothing_left):
    """Two ranks that trained as three would leave a record that lies."""
    arguments = shlex.split(runs["together", 0]["command"])[7:]
    arguments[1] = str(tmp_path / "again.jsonl")
    with pytest.raises(RunFailed, match="all runs must be of 1 rank, or all of the 3"):
        run_quickly(WORKER, np=3, arguments=arguments, quiet=True)


def grid_file(folder: Path, **content) -> Path:
    """Write a grid of 2 ranks and return its path; JSON is YAML."""
    path = folder / "grid.yaml"
    shared = {"images": 64, "hold_out": 4, "width": 1, "epochs": 2, "ranks": 2, "batch_size": 16}
    path.write_text(json.dumps({**shared, **content}))
    return path


def test_an_interrupted_study_keeps_what_has_finished_and_goes_on(tmp_path, nothing_left):
    grid = grid_file(tmp_path, conditions={"long": {"epochs": 5}}, seeds=[0, 1, 2])
    records = tmp_path / "folder" / "records.jsonl"
    command = [HVDCOURSE, "study", str(grid), "--records", str(records)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    whole = re.compile(r".*\n")
    assert wait_for(
        lambda: (
            process.poll() is not None or (records.exists() and whole.match(records.read_text()))
        ),
        200,
    )
    assert process.poll() is None, process.stderr.read()
    # Held, the lock lets no run be recorded between the signal and what it does.
    with FileLock(records.with_name(f".{records.name}.lock")):
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    kept = records.read_text()
    count = len(kept.splitlines())
    assert 1 <= count < 3
    assert said.splitlines()[-1] == (
        f"interrupted: {count} of 3 runs are recorded in {records}; "
        "the same command goes on with the rest."
    )
    assert wait_for(lambda: not started_processes(), 10)
    # A run that was killed while it wrote.
    records.write_text(kept + kept[:50])
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0
    assert f"{3 - count} run" in done.stdout.splitlines()[0]
    assert done.stdout.splitlines()[-1].split()[:5] == ["long", "2", "32", "10", "3"]
    assert f"warning: records.jsonl, line {count + 1}: is not whole JSON" in done.stderr
    assert records.read_text().startswith(kept + kept[:50] + "\n")
    assert len(records.read_text().splitlines()) == 4
    assert sorted(run["seed"] for run in read_records(records).runs) == [0, 1, 2]


def test_a_run_that_raises_is_named_and_those_before_it_are_kept(tmp_path, nothing_left):
    """The second run's weights would be in a file whose name is too long."""
    bad = "bad" * 100
    conditions = {"good": {}, bad: {"keep_weights": True}}
    grid, records = grid_file(tmp_path, conditions=conditions, seeds=[7]), tmp_path / "r.jsonl"
    command = [HVDCOURSE, "study", str(grid), "--records", str(records)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 1
    first, shown, *_ = done.stdout.splitlines()
    assert first == "2 runs of 2 ranks; one of them alone would be"
    assert shown.startswith("$ horovodrun -np 2 --gloo python -m hvdcourse.study.worker ")
    assert f"condition '{bad}', seed 7: OSError" in done.stderr
    assert f"1 of 2 runs are recorded in {records}; the same" in done.stderr.splitlines()[-1]
    assert [run["condition"] for run in read_records(records).runs] == ["good"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read as a grid: [Errno 2]"),
        ("a: [", "cannot be read as a grid: while parsing"),
        ("- 1", "a grid has 'conditions'"),
        ("conditions: {}", "a grid has 'conditions'"),
        ("conditions: {a: 5}", "condition 'a' must have settings; got 5"),
        ("conditions: {a: {width: 1}, a: {width: 2}}", "'a' stands twice"),
        ("conditions: {a: {wide: 1}}", "condition 'a': there is no setting 'wide'"),
        ("wide: 1\nconditions: {a: }", "condition 'a': there is no setting 'wide'"),
        ("seeds: 3\nconditions: {a: }", "'seeds' must be a list of whole numbers; got 3"),
        ("seeds: []\nconditions: {a: }", "'seeds' must be a list of whole numbers; got []"),
        ("seeds: [true]\nconditions: {a: }", "'seeds' must be a list of whole numbers"),
        ("seeds: [-1]\nconditions: {a: }", "a seed must be a whole number from 0"),
        ("conditions: {a: {ranks: 1000}}", "condition 'a': 1000 ranks are too many"),
        ("conditions: {a: {images: 5000}}", "condition 'a': images=5000, but there are 1437"),
        ("conditions: {a: {data: digit}}", "did you mean digits?"),
    ],
)
def test_a_wrong_grid_is_one_clear_line(text, said, tmp_path, nothing_starts):
    path = tmp_path / "grid.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadInput) as error:
        study_of(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def study_of(path):
    grid, seeds = read_grid(path)
    return study(grid, seeds=seeds, records=path.with_name("records.jsonl"))


def test_settings_are_shared_and_a_condition_may_have_its_own(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text("width: 1\nepochs: 3\nconditions: {32: , b: {epochs: 5}}")
    grid, seeds = read_grid(path)
    assert grid == {"32": Condition(width=1, epochs=3), "b": Condition(width=1, epochs=5)}
    assert seeds == [0]


@pytest.mark.parametrize("text", ["1e-2", "0.01", "1.e-2", "+.1E-1", "1.0e-02"])
def test_a_number_may_have_an_exponent(text, tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text(f"learning_rate: {text}\nconditions: {{a: }}")
    assert read_grid(path)[0] == {"a": Condition(learning_rate=0.01)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--timeout soon", "timeout must be a number of seconds above 0; got 'soon'"),
        ("--records folder", "the records need a file; "),
        ("--records grid.yaml/records", "the records cannot be kept in "),
    ],
)
def test_a_wrong_command_is_one_line_and_status_2(arguments, said, tmp_path):
    (tmp_path / "folder").mkdir()
    grid_file(tmp_path, conditions={"a": {}})
    command = [HVDCOURSE, "study", "grid.yaml", "--records", "r.jsonl", *arguments.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {said}")
    assert (done.returncode, done.stdout) == (2, "")


def test_images_of_a_folder_are_the_same_run_wherever_it_lies(tmp_path, monkeypatch):
    """The key has what is in the folder, and not its name."""
    from PIL import Image

    for name in ("here", "there"):
        for part in ("train/a/1", "train/b/1", "test/a/1"):
            file = tmp_path / name / f"{part}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8)).save(file)
    monkeypatch.chdir(tmp_path)
    conditions = {"here": Condition(data="here"), "there": Condition(data=f"{tmp_path}/there")}
    (here, first), (there, _) = study_module.runs_of(conditions, [0])
    assert here == there
    # As it was typed: a record names no folder of this machine.
    assert first["settings"]["data"] == "here"
    assert "here" not in here


def test_no_record_loses_its_weights_to_a_later_one(tmp_path):
    first = weights_file(tmp_path / "r.jsonl", "a b", 0)
    first.touch()
    second = weights_file(tmp_path / "r.jsonl", "a_b", 0)
    assert (first.name, second.name) == ("r.a_b.0.npz", "r.a_b.0.2.npz")
