"""The notebooks: their form, and the tool that runs them.

That each runs to its end with the solutions, and that outputs which are the same everywhere are
those stored, is nbval's part: `make test` runs it over copies that `prepare` makes.
"""

import ast
import os
import re
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path

import course
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from course import (
    NOTEBOOKS,
    PROJECT,
    NotebookFailed,
    main,
    portable,
    prepare,
    run_solved,
    store_outputs,
    write_html,
)
from IPython.core.inputtransformer2 import TransformerManager
from PIL import Image

from hvdcourse.checks.manifest import EXERCISES

pytestmark = pytest.mark.ranks

ALL = sorted(NOTEBOOKS.glob("*.ipynb"))
KNOWN_TAGS = {"parameters", "exercise", "nbval-check-output"}

each_notebook = pytest.mark.parametrize("notebook", ALL, ids=lambda path: path.stem)


def cells_of(notebook, kind="code"):
    return [c for c in nbformat.read(notebook, as_version=4).cells if c.cell_type == kind]


@each_notebook
def test_one_parameters_cell_has_the_four_names(notebook):
    tagged = [c for c in cells_of(notebook) if "parameters" in c.metadata.get("tags", [])]
    assert len(tagged) == 1
    names = re.findall(r"^([A-Z]+) = ", tagged[0].source, re.M)
    assert names[:4] == ["NP", "EPOCHS", "DATA", "SCRIPTS"]
    # Lessons with cells on several hosts also take those of a real cluster.
    assert names[4:] in ([], ["HOSTS"])


@each_notebook
def test_outputs_are_stored_small_and_without_errors(notebook):
    assert notebook.stat().st_size < 1_000_000
    outputs = [output for cell in cells_of(notebook) for output in cell.outputs]
    assert outputs
    assert not [output for output in outputs if output.output_type == "error"]
    texts = [output.text for output in outputs if output.output_type == "stream"]
    assert not [text for text in texts if str(PROJECT) in text or "/.cache/" in text]


@each_notebook
def test_stored_predictions_ask_what_their_cells_ask(notebook):
    for cell in cells_of(notebook):
        stored = " ".join(str(output.get("data", {})) for output in cell.outputs)
        for call in ast.walk(ast.parse(TransformerManager().transform_cell(cell.source))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "predict":
                parts = [node.value for node in ast.walk(call.args[0]) if is_text(node)]
                assert [part for part in parts if part not in stored] == []


@each_notebook
def test_what_is_predicted_is_folded_until_its_cell_runs(notebook):
    # JupyterLab unfolds the outputs of a cell that runs.
    for cell in cells_of(notebook):
        if ".compare(" in cell.source and cell.outputs:
            assert cell.metadata.get("jupyter", {}).get("outputs_hidden"), cell.source


def is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@each_notebook
def test_own_work_is_not_stored(notebook):
    for cell in cells_of(notebook):
        assert set(cell.metadata.get("tags", [])) <= KNOWN_TAGS
        if "exercise" in cell.metadata.get("tags", []):
            assert not cell.outputs


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda one: one.name)
def test_every_step_is_checked_in_a_lesson(exercise):
    # So nbval shows that the solution passes.
    sources = "\n".join(cell.source for notebook in ALL for cell in cells_of(notebook))
    every = {step.number for step in exercise.steps}
    found = re.findall(rf'^check\("{exercise.name}"(?:, (.+))?, folder=SCRIPTS\)', sources, re.M)
    assert (
        set().union(*(eval(steps) if steps else every for steps in found if steps != "1")) == every
    )


@each_notebook
def test_no_cell_hides_stderr(notebook):
    for cell in cells_of(notebook):
        assert not re.search(r"2>\s*/dev/null|%%capture|&>\s*/dev/null", cell.source)


@each_notebook
def test_every_link_and_image_exists(notebook):
    text = "\n".join(cell.source for cell in cells_of(notebook, "markdown"))
    targets = re.findall(r"\]\(([^)#]+)\)", text)
    assert targets
    for target in targets:
        if not target.startswith("http"):
            assert (NOTEBOOKS / target).exists(), target


@each_notebook
def test_navigation_stands_at_both_ends(notebook):
    text = cells_of(notebook, "markdown")
    for cell in (text[0], text[-1]):
        assert "(../README.md)" in cell.source


@each_notebook
def test_a_page_has_its_figures_and_formulas_in_it(notebook, tmp_path):
    write_html(nbformat.read(notebook, as_version=4), tmp_path / "page.html")
    sources = re.findall(r'<img[^>]* src="([^"]{20})', (tmp_path / "page.html").read_text())
    assert sources
    assert all(source.startswith("data:image/") for source in sources)
    assert (tmp_path / "mathjax" / "MathJax.js").exists()


def write_notebook(path: Path, *sources: str) -> Path:
    cells = [nbformat.v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate(sources)]
    cells[0].metadata["tags"] = ["parameters"]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    return path


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise RuntimeError('too bad')", r"broken.ipynb, cell 3: RuntimeError: too bad"),
        ("import os; os.kill(os.getpid(), 9)", r"broken.ipynb, .*[Kk]ernel died"),
    ],
)
def test_a_failing_notebook_is_named_with_its_cell(tmp_path, source, message):
    notebook = write_notebook(tmp_path / "broken.ipynb", "SCRIPTS = 1", "print(1)", source)
    with pytest.raises(NotebookFailed, match=message):
        run_solved(notebook, tmp_path / "out" / "broken.ipynb")


def test_a_solution_that_fails_its_check_fails_the_notebook(tmp_path):
    source = f"from hvdcourse import check\ncheck('ring_allreduce', folder={str(tmp_path)!r})"
    (tmp_path / "ring_allreduce.py").write_text("print('I do nothing')\n")
    notebook = write_notebook(tmp_path / "unmet.ipynb", "SCRIPTS = 1", source)
    with pytest.raises(NotebookFailed, match=r"unmet.ipynb, cell 2: the solution fails its check"):
        run_solved(notebook, tmp_path / "out" / "unmet.ipynb")


def test_in_a_prepared_copy_a_check_that_is_not_met_raises(tmp_path):
    source = "check('lamb', folder=SCRIPTS)"
    notebook = write_notebook(tmp_path / "lesson.ipynb", "SCRIPTS = EPOCHS = 1", source, "1")
    prepare(notebook, tmp_path / "out" / "lesson.ipynb", EPOCHS=2)
    _, _, parameters, cell, _ = cells_of(tmp_path / "out" / "lesson.ipynb")
    assert cell.source == "assert check('lamb', folder=SCRIPTS, timeout=600).passed"
    assert 'SCRIPTS = "../solutions"\nEPOCHS = 2' in parameters.source


def test_a_solved_run_leaves_the_learners_state_as_it_was(tmp_path, state, monkeypatch):
    source = """from hvdcourse.challenge import leaderboard
from hvdcourse.checks import check
assert check.SECONDS == 110  # Of a check in a queue.
board = leaderboard.default_file()
board.write_text("the solution's\\n")
print(board)"""
    notebook = write_notebook(tmp_path / "score.ipynb", "SCRIPTS = 1", source)
    state.mkdir()
    monkeypatch.delenv("HVDCOURSE_QUEUE", raising=False)
    executed = run_solved(notebook, tmp_path / "out" / "score.ipynb")
    (output,) = executed.cells[-1].outputs
    assert output.text.endswith("leaderboard.jsonl\n")
    assert str(state) not in output.text
    assert not Path(output.text.strip()).exists()
    assert list(state.iterdir()) == []
    assert os.environ["HVDCOURSE_STATE"] == str(state)
    assert "HVDCOURSE_QUEUE" not in os.environ


def test_storing_outputs_changes_nothing_else(tmp_path):
    notebook = write_notebook(tmp_path / "small.ipynb", "SCRIPTS = 1", "print(SCRIPTS)")
    before = [cell.source for cell in cells_of(notebook)]
    executed = run_solved(notebook, tmp_path / "out" / "small.ipynb")
    store_outputs(notebook, executed)
    assert [cell.source for cell in cells_of(notebook)] == before
    assert cells_of(notebook)[1].outputs[0].text == "../solutions\n"
    assert [cell.execution_count for cell in cells_of(notebook)] == [1, 2]


def test_what_is_stored_names_no_folder_of_this_machine():
    library = "/home/me/.cache/horovod/src/third_party/compatible17_gloo/gloo/transport/tcp/pair.cc"
    text = f"$ mpirun --prefix {PROJECT}/.venv\n[{library}:589] Read error\n/tmp/kept.npz"
    output = nbformat.v4.new_output("stream", text=text)
    assert portable(output).text == (
        "$ mpirun --prefix /course/.venv\n"
        "[third_party/compatible17_gloo/gloo/transport/tcp/pair.cc:589] Read error\n/tmp/kept.npz"
    )


def test_plots_are_stored_small_and_look_the_same():
    figure, axes = plt.subplots()
    for number in range(6):
        axes.plot(np.sin(np.arange(50) / (number + 1)), label=f"line {number}")
    axes.legend()
    file = BytesIO()
    figure.savefig(file, format="png")
    plt.close(figure)
    whole = b64encode(file.getvalue()).decode()
    output = nbformat.v4.new_output("display_data", {"image/png": whole})
    stored = portable(output).data["image/png"]
    assert len(stored) < len(whole) / 2
    before, after = (
        np.asarray(Image.open(BytesIO(b64decode(png))).convert("RGB"), float)
        for png in (whole, stored)
    )
    assert before.shape == after.shape
    assert np.abs(before - after).mean() < 1


@pytest.fixture
def small_course(tmp_path, monkeypatch):
    """Return what runs a course of two notebooks, of which the second fails in its cell 2."""
    write_notebook(tmp_path / "00_sound.ipynb", "SCRIPTS = 1", "print(SCRIPTS)")
    write_notebook(tmp_path / "01_broken.ipynb", "SCRIPTS = 1", "1 / 0")
    (tmp_path / "glossary.md").write_text(
        "## rank\n\nA process. [Lesson 0]\n\n[Lesson 0]: 00_sound.ipynb\n"
    )
    monkeypatch.setattr(course, "NOTEBOOKS", tmp_path)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["course", str(tmp_path / "built"), *arguments])
        main()

    return run


def test_a_course_says_how_each_notebook_ended_and_names_the_failed_cell(
    small_course, tmp_path, capsys
):
    with pytest.raises(SystemExit) as ended:
        small_course()
    assert "1 of 2 notebooks failed:\n  01_broken.ipynb, cell 2: ZeroDiv" in ended.value.code
    sound, broken = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"00_sound.ipynb … ok, \d+ s", sound)
    assert broken.startswith("01_broken.ipynb … FAILED: 01_broken.ipynb, cell 2: ZeroDivisionError")
    assert "../solutions" in (tmp_path / "built" / "00_sound.html").read_text()
    assert (tmp_path / "built" / "01_broken.ipynb").exists()
    glossary = (tmp_path / "built" / "glossary.html").read_text()
    assert '<h2 id="rank">' in glossary
    assert '<a href="00_sound.html">' in glossary


def test_a_course_of_chosen_notebooks_refuses_one_that_does_not_exist(small_course, tmp_path):
    with pytest.raises(SystemExit) as ended:
        small_course("--only", "00_sound", "02_none")
    assert "no notebook 02_none in" in ended.value.code
    assert "there are: 00_sound, 01_broken" in ended.value.code
    small_course("--only", "00_sound")
    assert not (tmp_path / "built" / "01_broken.ipynb").exists()
