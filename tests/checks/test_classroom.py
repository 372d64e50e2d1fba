"""The progress of a class: from whose files, how it is counted, and what is left out by name."""

import json

import pytest
from classes import a_class, remembered, verdict

from hvdcourse.checks.class_files import read_class
from hvdcourse.checks.classroom import Learner, stops_of, without_names


@pytest.fixture
def folder(tmp_path):
    return a_class(tmp_path / "class")


def by_name(*folders):
    """Return the learners by name, of whom nothing may be left out."""
    learners, left_out = read_class(folders)
    assert left_out == []
    return {learner.name: learner for learner in learners}


def test_progress_files_and_junit_files_tell_where_each_learner_is(folder):
    learners = by_name(folder)
    assert list(learners) == ["ann", "ben", "eve", "zoe"]
    assert {name: learner.met for name, learner in learners.items()} == {
        "ann": 9, "ben": 2, "eve": 6, "zoe": 0,
    }  # fmt: skip
    assert learners["ann"].place == ("fashion_mnist", 2)
    assert learners["ben"].place == ("mpi_concepts", 2)
    # Without times, the last exercise of the course counts.
    assert learners["eve"].place == ("fashion_mnist", 2)
    assert learners["zoe"].place is None
    assert learners["ann"].last_check is not None
    assert learners["eve"].last_check is None


def test_the_exercise_that_was_checked_last_is_where_a_learner_is(tmp_path):
    remembered(tmp_path / "ann", verdict("fashion_mnist", 1), verdict("mpi_concepts"))
    file = tmp_path / "ann" / "progress.json"
    kept = json.loads(file.read_text())
    kept["fashion_mnist"]["checked"] = "2026-01-01T10:00:00"
    file.write_text(json.dumps(kept))
    (learner,) = by_name(tmp_path).values()
    assert learner.place == ("mpi_concepts", 1)


def test_a_finished_exercise_has_no_step_left(tmp_path):
    remembered(tmp_path / "ann", verdict("ring_allreduce", 1, 2, 3, 4))
    (learner,) = by_name(tmp_path).values()
    assert (learner.place, learner.stops) == (("ring_allreduce", None), [])


def test_a_step_that_any_file_calls_met_is_met(tmp_path):
    ann = remembered(tmp_path / "ann", verdict("ring_allreduce", 2))
    verdict("ring_allreduce", 1).write_junit(ann / "first.xml")
    (learner,) = by_name(tmp_path).values()
    assert learner.steps["ring_allreduce"] == {1: True, 2: True, 3: False, 4: False}


def test_the_steps_that_stop_most_come_first(folder):
    stops = [
        (s.exercise, s.step, s.stopped, s.judged) for s in stops_of(list(by_name(folder).values()))
    ]
    assert stops == [("fashion_mnist", 2, 2, 2), ("mpi_concepts", 2, 1, 2)]


def test_a_learners_own_folder_and_several_classes_are_taken(folder, tmp_path):
    other = remembered(tmp_path / "other" / "ben", verdict("mpi_concepts"))
    learners = by_name(folder / "ann", other, other.parent, folder / "ben" / ".hvdcourse")
    assert list(learners) == ["class/ann", "class/ben", "other/ben"]
    assert list(by_name(folder / "ann")) == ["ann"]


def test_numbers_do_not_tell_names():
    equal = [Learner(str(number), {}, {}) for number in range(50)]
    best = Learner("best", {"mpi_concepts": {1: True}}, {})
    numbered = without_names([*equal, best])
    assert [learner.name for learner in numbered] == [f"learner {n}" for n in range(1, 52)]
    assert numbered[0].met == 1
    # In 50! orders of equals, chance does not find the same one twice.
    marked = [Learner(str(n), {"mpi_concepts": {1: False}, str(n): {}}, {}) for n in range(50)]
    orders = [[list(one.steps)[1] for one in without_names(marked)] for _ in range(2)]
    assert orders[0] != orders[1]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("progress.json", "", "is not a progress file of this course: Invalid JSON"),
        ("progress.json", '{"mpi_concepts": ', "is not a progress file of this course: Invalid"),
        ("progress.json", "[1]", "is not a progress file of this course"),
        ("progress.json", '{"svhn": {"steps": {"1": "yes"}}}', "svhn: steps: 1: Input should be"),
        ("progress.json", '{"svhn": {}}', "svhn: steps: Field required"),
        ("progress.json", '{"svhm": {"steps": {"1": true}}}', "has no exercise 'svhm'"),
        (
            "progress.json",
            '{"svhn": {"steps": {"7": true}}}',
            "svhn has steps 1 to 6, and no other",
        ),
        ("svhn.xml", "", "is not a JUnit file"),
        ("svhn.xml", "<html></html>", "is not a JUnit file"),
        ("svhn.xml", '<testsuites><testsuite name="pytest"/></testsuites>', "exercise 'pytest'"),
    ],
)
def test_a_broken_file_is_told_by_name_and_the_rest_is_counted(folder, name, text, said):
    broken = folder / "ben" / name
    broken.write_text(text)
    learners, (line,) = read_class([folder])
    assert str(broken) in line
    assert said in line
    assert {learner.name: learner.met for learner in learners}["ben"] == 2


def test_who_has_only_broken_files_is_not_counted_as_not_begun(folder):
    (folder / "ann" / "progress.json").write_bytes(b"\x00\xff")
    (folder / "zoe" / "progress.json").mkdir()
    learners, left_out = read_class([folder])
    assert [learner.name for learner in learners] == ["ben", "eve"]
    assert [
        f"{name}/progress.json" in line for name, line in zip(("ann", "zoe"), left_out, strict=True)
    ] == [True, True]


def test_a_folder_that_is_no_class_is_told_by_name(folder, tmp_path):
    empty = tmp_path / "empty"
    (empty / "inner").mkdir(parents=True)
    learners, left_out = read_class([empty, tmp_path / "gone", folder])
    assert len(learners) == 4
    assert left_out[0].startswith(f"neither {empty} nor a folder in it has progress.json")
    assert left_out[1] == f"there is no folder {tmp_path / 'gone'}"
