"""What is made from the solutions is up to date, and wrong marks are refused by name."""

import py_compile
import re

import pytest

from hvdcourse.checks.exercise import Exercise, Step
from hvdcourse.checks.manifest import EXERCISES
from hvdcourse.checks.stages import (
    BadMarkers,
    Block,
    generate,
    generated_files,
    parse,
    render,
    solutions_in,
    steps_of,
)
from hvdcourse.paths import SOLUTIONS, SOURCE_CODE

EVERY_SOLUTION = solutions_in(SOLUTIONS)
each_solution = pytest.mark.parametrize("solution", EVERY_SOLUTION, ids=lambda path: path.stem)
each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)

TWO_BLOCKS = """\
import os

# Step 1: Say a word
# or two.
#: word = ""
word = "hello"  # a reason
# End of step 1.
if word:
    # Step 2: Print it.
    #:
    print(word)
    # End of step 2.
# Step 1: Say goodbye.
#: pass
word = "bye"
# End of step 1.
"""


def parts_of(path):
    return parse(path.read_text(), path.name)


@each_solution
def test_generated_files_are_up_to_date(solution):
    for path, text in generated_files(solution, SOURCE_CODE).items():
        assert path.read_text() == text, f"{path.name} is stale: python -m hvdcourse.checks.stages"


def test_there_is_no_generated_file_without_its_solution():
    made = {path for solution in EVERY_SOLUTION for path in generated_files(solution, SOURCE_CODE)}
    there = {*SOURCE_CODE.glob("*.py"), *SOLUTIONS.glob("*_after_step_*.py")}
    assert there <= made


@each_exercise
def test_the_solution_is_what_stands_after_the_last_step(exercise):
    solution = SOLUTIONS / f"{exercise.name}.py"
    last = SOLUTIONS / f"{exercise.name}_after_step_{len(exercise.steps):02d}.py"
    marks = re.compile(r"^ *(#:.*|# End of step \d+\.)\n", re.MULTILINE)
    without_marks = re.sub(r"\n{4,}", "\n\n\n", marks.sub("", solution.read_text()))
    assert last.read_text() == without_marks


@each_solution
def test_generated_files_and_solutions_are_valid_python(solution, tmp_path):
    for path in [solution, *generated_files(solution, SOURCE_CODE)]:
        py_compile.compile(str(path), cfile=str(tmp_path / "compiled"), doraise=True)


@each_exercise
def test_each_step_of_the_manifest_has_a_block_and_each_block_a_step(exercise):
    numbers = [step.number for step in exercise.steps]
    assert steps_of(parts_of(SOLUTIONS / f"{exercise.name}.py")) == numbers


def test_every_solution_with_steps_is_an_exercise():
    with_steps = {path.stem for path in EVERY_SOLUTION if steps_of(parts_of(path))}
    assert with_steps == {exercise.name for exercise in EXERCISES}


@each_exercise
def test_what_learners_get_says_todo_for_every_step_and_no_more(exercise):
    text = (SOURCE_CODE / f"{exercise.name}.py").read_text()
    todo = {int(number) for number in re.findall(r"# TODO: Step (\d+): ", text)}
    assert todo == {step.number for step in exercise.steps}
    assert "#:" not in text
    assert "# End of step" not in text


def test_each_step_is_rendered_before_or_after():
    parts = parse(TWO_BLOCKS, "two.py")
    assert render(parts, set()).splitlines() == [
        "import os", "", "# TODO: Step 1: Say a word or two.", 'word = ""', "if word:",
        "    # TODO: Step 2: Print it.", "# TODO: Step 1: Say goodbye.", "pass",
    ]  # fmt: skip
    assert render(parts, {1}).splitlines() == [
        "import os", "", "# Step 1: Say a word", "# or two.", 'word = "hello"  # a reason',
        "if word:", "    # TODO: Step 2: Print it.", "# Step 1: Say goodbye.", 'word = "bye"',
    ]  # fmt: skip
    assert steps_of(parts) == [1, 2]


def test_a_block_can_leave_its_place_to_be_found():
    parts = parse(
        "# Step 1: Say it.\n#:\n# End of step 1.\n"
        "# Step 1 is done here.\n#: pass\nsay()\n# End of step 1.\n",
        "lab.py",
    )
    assert render(parts, set()).splitlines() == ["# TODO: Step 1: Say it.", "pass"]
    assert render(parts, {1}).splitlines() == [
        "# Step 1: Say it.", "# Step 1 is done here.", "say()",
    ]  # fmt: skip


def test_a_long_todo_is_wrapped_at_its_own_indentation():
    block = Block(3, ["        # Step 3: " + "word " * 40], ["        pass"], [])
    lines = block.render(solved=False)
    assert all(len(line) <= 100 and line.startswith("        # ") for line in lines[:-1])
    assert lines[-1] == "        pass"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Step 1: One.\n#:\nx = 1\n", r"bad\.py.*: step 1 has no '# End of step 1\.'"),
        ("# Step 1: One.\n#:\nx = 1\n# End of step 2.\n", r"bad\.py, line 4: step 1 needs"),
        ("# Step 1: One.\n# End of step 1.\n", r"bad\.py, line 2: step 1 needs a '#:' line"),
        ("# Step 1: One.\nx = 1\n#:\n# End of step 1.\n", r"bad\.py, line 2: step 1 has code"),
        ("x = 1\n# End of step 1.\n", r"bad\.py, line 2: '# End of step 1\.' stands outside"),
        ("x = 1\n#: y = 1\n", r"bad\.py, line 2: '#: y = 1' stands outside any step"),
        (
            "# Step 1: One.\n#:\nx = 1\n# Step 2: Two.\n#:\n# End of step 2.\n",
            r"bad\.py, line 4: step 2 begins before step 1 ends",
        ),
    ],
)
def test_a_wrong_mark_is_refused_by_file_line_and_mistake(text, said):
    with pytest.raises(BadMarkers, match=said):
        parse(text, "bad.py")


def test_only_what_has_changed_is_written(tmp_path):
    solutions, source_code = tmp_path / "solutions", tmp_path / "source_code"
    solutions.mkdir()
    source_code.mkdir()
    (solutions / "two.py").write_text(TWO_BLOCKS)
    names = [path.name for path in generate(solutions, source_code)]
    assert names == ["two.py", "two_after_step_01.py", "two_after_step_02.py"]
    assert generate(solutions, source_code) == []
    (source_code / "two.py").write_text("stale")
    assert generate(solutions, source_code) == [source_code / "two.py"]


def test_a_solution_written_anew_has_what_comes_before_it_in_a_file_of_its_own(tmp_path):
    (tmp_path / "anew.py").write_text("x = 2\n")
    (tmp_path / "anew_before.py").write_text("x = 1\n")
    assert [path.name for path in solutions_in(tmp_path)] == ["anew.py"]
    files = generated_files(tmp_path / "anew.py", tmp_path / "source")
    assert files == {tmp_path / "source" / "anew.py": "x = 1\n"}


def test_a_solution_with_steps_has_no_file_of_what_comes_before_it(tmp_path):
    (tmp_path / "two.py").write_text(TWO_BLOCKS)
    (tmp_path / "two_before.py").write_text("x = 1\n")
    with pytest.raises(BadMarkers, match=r"two\.py has steps, and two_before\.py too"):
        generated_files(tmp_path / "two.py", tmp_path / "source")


@pytest.mark.parametrize("missing", [{"title": " "}, {"check": None}])
def test_a_step_without_title_or_check_is_refused(missing):
    fields = {"number": 7, "title": "A title", "check": print, **missing}
    with pytest.raises(ValueError, match=r"step 7 .* needs a title and a check"):
        Step(**fields)


def test_steps_must_be_numbered_from_1_without_gaps():
    steps = tuple(Step(number=number, title="A title", check=print) for number in (1, 3))
    with pytest.raises(ValueError, match="the steps of gaps must be numbered"):
        Exercise(
            name="gaps", notebook="", backend="gloo", observe="", trials=lambda _: [], steps=steps
        )
