"""`make new-exercise`, on a copy of the project: what it lays out is an exercise that works."""

import importlib.util
import json
import shutil
import subprocess
import sys

import pytest
from new_exercise import PLACES, lay_out

from hvdcourse.errors import BadInput
from hvdcourse.paths import NOTEBOOKS, PROJECT

# So long that lines must be wrapped anew.
NAME = "mean_of_the_vectors_of_all_ranks_on_several_hosts"


@pytest.fixture
def copy(project):
    """The project with all that a new exercise touches."""
    shutil.copy(PROJECT / "pyproject.toml", project)
    shutil.copytree(PROJECT / "tests" / "mistakes", project / "tests" / "mistakes")
    (project / "tests" / "answers").mkdir()
    for notebook in NOTEBOOKS.glob("*.ipynb"):
        (project / "notebooks" / notebook.name).touch()
    return project


def test_what_is_laid_out_is_registered_and_in_the_projects_format(copy, hvdcourse):
    files = lay_out(NAME, "3", copy)
    names = {str(path.relative_to(copy)) for path in files}
    assert names == {
        *(place.format(name=NAME) for place in PLACES.values()),
        f"source_code/{NAME}.py",
        f"solutions/{NAME}_after_step_01.py",
        "hvdcourse/checks/manifest.py",
    }
    python = [path for path in files if path.suffix == ".py"]
    for command in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *command, *python]
        done = subprocess.run(ruff, cwd=copy, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    last = json.loads(hvdcourse("progress", "--json").stdout)[-1]
    assert (last["exercise"], last["notebook"]) == (NAME, "03_multi_gpu_horovodrun")
    assert "# TODO: Step 1: " in (copy / "source_code" / f"{NAME}.py").read_text()
    hint = hvdcourse("hint", NAME, "1")
    assert (hint.returncode, hint.stderr) == (0, "")


@pytest.mark.ranks
@pytest.mark.timeout(180)
@pytest.mark.usefixtures("nothing_left", "state")
def test_the_untouched_script_and_a_mistake_fail_and_two_right_answers_pass(copy):
    lay_out(NAME, "1", copy)
    untouched = (copy / "source_code" / f"{NAME}.py").read_text()
    solution = (copy / "solutions" / f"{NAME}.py").read_text()
    answer = (copy / "tests" / "answers" / f"{NAME}_by_gathering.py").read_text()
    (mistake,) = rounds(copy)[0].mistakes
    ((old, new),) = mistake.changes
    assert solution.count(old) == 1
    wrong = solution.replace(old, new)
    first, *right, last = seen_of(copy, untouched, solution, answer, wrong)
    assert first.startswith("on 3 ranks on 2 hosts (2 + 1):\nrank 0: has only its own")
    assert right == ["passed", "passed"]
    assert mistake.said[0] in last


# In one process, whose checks share what starts their ranks.
CHECK_EACH = """
import json, sys
from hvdcourse import check
from hvdcourse.paths import SOURCE_CODE
name, *texts = json.load(sys.stdin)
seen = []
for text in texts:
    (SOURCE_CODE / f"{name}.py").write_text(text)
    (step,) = check(name).steps
    seen.append("passed" if step.passed else "\\n".join(step.seen))
print(json.dumps(seen))
"""


def seen_of(copy, *texts: str) -> list[str]:
    """Check these texts as the new exercise and return what was seen of its one step."""
    command, told = [sys.executable, "-c", CHECK_EACH], json.dumps([NAME, *texts])
    done = subprocess.run(command, cwd=copy, input=told, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rounds(copy):
    """Return the mistakes that were laid out."""
    path = copy / "tests" / "mistakes" / f"{NAME}.py"
    spec = importlib.util.spec_from_file_location(NAME, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ROUNDS


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "a Python name in lower case, such as my_exercise; got ''"),
        ("two words", "got 'two words'"),
        ("../up", "got '../up'"),
        ("CamelCase", "got 'CamelCase'"),
        ("1st", "got '1st'"),
        ("lambda", "got 'lambda'"),
        ("random", "Python has a module 'random' already"),
        ("svhn", r"solutions/svhn\.py is there already"),
        ("start_here", r"solutions/start_here\.py is there already"),
        ("shares", r"hvdcourse/checks/exercises/shares\.py is there already"),
        ("round", r"tests/mistakes/round\.py is there already"),
        ("lamb_again", "one of 'lamb_again' and 'lamb' begins with the other"),
        ("mean_before", "looks like a file that belongs to a solution"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_and_nothing_is_written(name, said, copy):
    before = sorted(copy.rglob("*"))
    with pytest.raises(BadInput, match=said):
        lay_out(name, "1", copy)
    assert sorted(copy.rglob("*")) == before


def test_a_lesson_that_is_not_there_is_refused(copy):
    with pytest.raises(BadInput, match=r"a lesson is one of 0, 1, 2, .* got '12'"):
        lay_out(NAME, "12", copy)
