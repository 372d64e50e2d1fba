"""The real ``hvdcourse`` command, on a copy of the project that each test may change."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from junitparser import JUnitXml
from watching import HVDCOURSE

from hvdcourse.checks.hints import LEVELS, hints_for
from hvdcourse.checks.manifest import EXERCISES, find_exercise
from hvdcourse.launch.run import largest_np
from hvdcourse.paths import PROJECT

pytestmark = [
    pytest.mark.ranks,
    pytest.mark.timeout(180),
    pytest.mark.usefixtures("nothing_left", "state"),
]

RING = find_exercise("ring_allreduce")


# Its solution is checked fastest: by one process, without TensorFlow where it is not forked.
QUICK, UNFORKED = "timeline", {"HVDCOURSE_FORK": "0"}


def right_answer(project: Path) -> Path:
    """Put the solution of the quick exercise into the learner's place, and return that."""
    script = project / "source_code" / f"{QUICK}.py"
    script.write_text((project / "solutions" / f"{QUICK}.py").read_text())
    return script


def one_error_line(done: subprocess.CompletedProcess) -> str:
    """Return the only line on stderr, which begins with ``error: ``."""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("run gone.py", "no script 'gone.py'"),
        ("run start_here.py -np 0", "np must be at least 1; got 0"),
        ("run start_here.py -np -1", "np must be at least 1; got -1"),
        ("run start_here.py -np two", "np must be a whole number of ranks, such as 2; got 'two'"),
        (f"run start_here.py -np {largest_np() + 1}", "is too many for this machine"),
        ("run start_here.py --backend nccl", "backend must be one of gloo, mpi; got 'nccl'"),
        ("run start_here.py --timeout soon", "timeout must be a number of seconds above 0"),
        ("run start_here.py --standstill 0", "standstill must be a number of seconds above 0"),
        ("check nothing", "there is no exercise 'nothing'; the exercises are mpi_concepts, ring"),
        ("check mpi_concepts 9", "mpi_concepts has steps 1 to 8; there is no step 9"),
        (
            "check mpi_concepts two",
            "steps are a number, such as 2, or several, such as 1-7; got 'two'",
        ),
        ("check mpi_concepts ²", "steps are a number, such as 2, or several, such as 1-7; got '²'"),
        ("check mpi_concepts --folder solutions/gone", "no script 'mpi_concepts.py'"),
        ("hint nothing 1", "there is no exercise 'nothing'"),
        (
            "hint artists_resnet 1",
            "no hints: hvdcourse challenge judges it",
        ),
        ("hint mpi_concepts 0", "there is no step '0'"),
        ("solution mpi_concepts two", "there is no step 'two'"),
        ("reset nothing", "there is no exercise 'nothing'"),
        ("class . --picture class.jpg", "a picture is a file .png or .svg; got 'class.jpg'"),
        ("predict --model alexnet", "model must be one of resnet50, resnet101"),
        ("predict --model vgg16 --gpus many", "gpus must be a whole number from 1"),
        ("predict --model vgg16 --gpus 10", "gpus must fill whole hosts of 4"),
        ("predict --model vgg16 --link 25", "a link must be one of pcie, nvlink, nvlink4, or a"),
        ("predict --model vgg16 --cycle-ms -1", "cycle_ms must be a number above 0; got '-1'"),
    ],
)
def test_each_mistake_gives_one_clear_line_and_status_2(arguments, said, in_process):
    done = in_process(*arguments.split())
    assert said in one_error_line(done)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(
    ("how", "arguments"),
    [
        ("hvdcourse", ""),
        *(
            ("in_process", wrong)
            for wrong in ("frobnicate", "check", "check mpi_concepts -1", "run")
        ),
    ],
)
def test_a_wrong_command_line_shows_the_usage(how, arguments, request):
    done = request.getfixturevalue(how)(*arguments.split())
    assert done.returncode == 2
    assert "Usage: hvdcourse" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_syntax_error_is_told_by_file_and_line(hvdcourse, project):
    script = project / "source_code" / "ring_allreduce.py"
    script.write_text("import os\nprint('no end'\n")
    for arguments in (["run", "ring_allreduce.py"], ["check", "ring_allreduce"]):
        done = hvdcourse(*arguments)
        assert f"{script}, line 2: " in one_error_line(done)
        assert done.returncode == 2


def test_a_failed_run_shows_the_ranks_traceback_and_not_the_commands_own(hvdcourse, script):
    done = hvdcourse("run", str(script("def half(x): return x / 0\nhalf(1)")), "-np", "2")
    assert done.returncode == 1
    _, said = done.stderr.split("\nerror: Rank ")
    assert "failed first: ZeroDivisionError" in said
    assert str(PROJECT / "hvdcourse") not in said


def test_arguments_after_two_dashes_are_the_scripts_own(hvdcourse, script):
    path = script("import sys; print(*sys.argv[1:])")
    done = hvdcourse("run", str(path), "-np", "1", "--", "--epochs", "3", "-x")
    assert done.stdout.splitlines()[1:] == ["[0] --epochs 3 -x"]


def test_output_is_shown_while_the_ranks_still_run(script, tmp_path):
    path = script("""
        import pathlib, time
        print("first")
        while not pathlib.Path(__file__).with_name("go_on").exists():
            time.sleep(0.05)
        print("second")
    """)
    command = [HVDCOURSE, "run", str(path), "-np", "1", "--timeout", "60"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("$ horovodrun -np 1 --gloo python")
    assert process.stdout.readline() == "[0] first\n"
    (tmp_path / "go_on").touch()
    assert process.communicate()[0] == "[0] second\n"


def test_list_shows_every_exercise_and_step(in_process):
    shown = in_process("list").stdout
    for exercise in EXERCISES:
        assert exercise.name in shown
        for step in exercise.steps:
            assert f"{step.number}. {step.title}" in shown


def test_a_prediction_is_a_table_or_json(in_process):
    arguments = [
        "predict",
        "--model",
        "vgg16",
        "--gpus",
        "64",
        "--link",
        "100gbit",
        "--critical-batch",
        "8192",
    ]
    lines = in_process(*arguments).stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("│")] == [
        "1",
        "2",
        "4",
        "8",
        "16",
        "32",
        "64",
    ]
    told = json.loads(in_process(*arguments, "--json").stdout)
    assert told["gpus"] == [1, 2, 4, 8, 16, 32, 64]
    assert told["settings"]["link"] == "100gbit"
    faster = json.loads(in_process(*arguments, "--fp16", "--json").stdout)
    assert faster["seconds"][-1] < told["seconds"][-1]
    assert faster["time"][-1] < 1 / 32


def test_a_reader_that_goes_away_is_no_traceback(project):
    command = f"{sys.executable} -c 'import hvdcourse.commands.main as c; c.main()' list | true"
    done = subprocess.run(command, shell=True, cwd=project, capture_output=True, text=True)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_every_step_has_hints_and_a_solution(exercise, in_process):
    for step in exercise.steps:
        hint = in_process("hint", exercise.name, str(step.number)).stdout
        assert hint.startswith(f"{step.title}\n\n{LEVELS[0]}: ")
        shown = in_process("solution", exercise.name, str(step.number)).stdout
        assert f"# Step {step.number}: " in shown
        assert "#:" not in shown


def test_check_of_a_right_answer_ends_with_0_and_is_remembered(hvdcourse, project):
    script = right_answer(project)
    done = hvdcourse("check", QUICK, **UNFORKED)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{QUICK}: 5 of 5 steps met" in done.stdout
    row = progress(hvdcourse, QUICK)
    assert (row["met"], row["of"], row["changed_since"]) == (5, 5, False)
    with script.open("a") as file:
        file.write("# a thought\n")
    assert progress(hvdcourse, QUICK)["changed_since"]
    table = hvdcourse("progress").stdout
    assert "5 of 5" in table
    assert "●●●●●" in table
    assert "(changed since)" in " ".join(table.replace("│", " ").split())


def progress(command, name: str) -> dict:
    """Return what is remembered of an exercise."""
    rows = json.loads(command("progress", "--json").stdout)
    assert [row["exercise"] for row in rows] == [exercise.name for exercise in EXERCISES]
    return next(row for row in rows if row["exercise"] == name)


def test_check_of_an_untouched_script_ends_with_1_and_offers_a_hint(hvdcourse, in_process):
    done = hvdcourse("check", "ring_allreduce")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.endswith("s)\nFor a hint: hvdcourse hint ring_allreduce 1\n")
    assert LEVELS[0] not in done.stdout
    assert progress(in_process, "ring_allreduce")["met"] == 0
    # The question is about what the check saw; each time there is one hint more.
    usual = hints_for("ring_allreduce", 1)
    for level in (1, 2, 3, 3):
        shown = in_process("hint", "ring_allreduce", "1").stdout
        assert [name in shown for name in LEVELS] == [number < level for number in range(3)]
        assert usual.question not in shown
        assert ("type the same command again" in shown) == (level < 3)
    assert usual.place in shown


def test_a_script_with_a_syntax_error_gives_json_too(hvdcourse, project):
    (project / "source_code" / "mpi_concepts.py").write_text("def main(:\n")
    done = hvdcourse("check", "mpi_concepts", "--json")
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert not told["passed"]
    assert "mpi_concepts.py, line 1: invalid syntax" in told["error"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "the command line is wrong"),
        (("mpi_concepts", "--loud"), "the command line is wrong"),
        (("nothing",), "there is no exercise 'nothing'"),
        (("mpi_concepts", "99"), "there is no step 99"),
        (("mpi_concepts", "one"), "steps are a number"),
        (("mpi_concepts", "--timeout", "0"), "timeout must be a number of seconds above 0"),
        (("mpi_concepts", "--folder", "/nowhere"), "looked for /nowhere/mpi_concepts.py"),
    ],
)
def test_what_cannot_be_checked_gives_json_too(in_process, arguments, said):
    done = in_process("check", *arguments, "--json")
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert not told["passed"]
    assert said in told["error"]


def test_check_for_programs_gives_json_and_junit(hvdcourse, tmp_path):
    report = tmp_path / "class" / "ann" / "junit.xml"
    report.parent.mkdir(parents=True)
    done = hvdcourse(
        "check", "ring_allreduce", "--json", "--junit", str(report), "--hint", "--hint"
    )
    assert done.returncode == 1
    verdict = json.loads(done.stdout)
    assert verdict["passed"] is False
    places = [hints_for("ring_allreduce", step.number).place for step in RING.steps]
    assert [step["hints"][1:] for step in verdict["steps"]] == [[place] for place in places]
    (suite,) = JUnitXml.fromfile(str(report))
    assert (suite.tests, suite.failures) == (4, 4)
    assert [case.name for case in suite] == [f"step {s.number}: {s.title}" for s in RING.steps]
    of_class = hvdcourse("class", str(report.parent.parent), "--json")
    assert (of_class.returncode, of_class.stderr) == (0, "")
    (learner,) = json.loads(of_class.stdout)["learners"]
    assert learner["steps"] == {"ring_allreduce": dict.fromkeys("1234", False)}


def test_a_terminal_without_greek_letters_shows_question_marks(hvdcourse):
    done = hvdcourse("solution", "lamb", "2", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "?" in done.stdout


def test_a_check_elsewhere_is_not_remembered(hvdcourse, in_process, project):
    done = hvdcourse("check", QUICK, "--folder", str(project / "solutions"), **UNFORKED)
    assert done.returncode == 0
    assert progress(in_process, QUICK)["met"] == 0


def test_reset_keeps_a_dated_copy_of_the_learners_file(hvdcourse, project, state):
    script = project / "source_code" / "ring_allreduce.py"
    as_it_came = script.read_text()
    script.write_text("# my own work\n")
    done = hvdcourse("reset", "ring_allreduce")
    assert done.returncode == 0
    assert script.read_text() == as_it_came
    (copy,) = state.glob("ring_allreduce_20*.py")
    assert str(copy) in done.stdout
    assert copy.read_text() == "# my own work\n"


def test_two_resets_in_a_second_keep_both_copies(project, state):
    code = """
from hvdcourse.checks.manifest import find_exercise
from hvdcourse.paths import SOURCE_CODE
from hvdcourse.checks.learner_files import reset
for text in ("first", "second"):
    (SOURCE_CODE / "ring_allreduce.py").write_text(text)
    reset("ring_allreduce")
"""
    subprocess.run([sys.executable, "-c", code], cwd=project, check=True)
    assert sorted(copy.read_text() for copy in state.glob("*.py")) == ["first", "second"]


def test_reset_brings_back_a_script_that_was_deleted(hvdcourse, project):
    script = project / "source_code" / "ring_allreduce.py"
    script.unlink()
    assert hvdcourse("reset", "ring_allreduce").returncode == 0
    assert script.exists()


def test_checks_of_one_step_each_add_to_the_progress(hvdcourse, in_process, project):
    right_answer(project)
    for step in ("1", "3"):
        assert hvdcourse("check", QUICK, step, **UNFORKED).returncode == 0
    steps = progress(in_process, QUICK)["steps"]
    assert steps == {"1": True, "2": False, "3": True, "4": False, "5": False}
