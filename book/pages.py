"""Assembles what Sphinx makes the book of, in ``build/book/source``.

These are the lessons as they are stored, this folder's pages, and a page for each exercise, made
from the manifest, its hints and its solution.
"""

import re
import shutil
from pathlib import Path

import nbformat
from alternatives import captions, describe_pictures
from mistakes_pages import mistakes_pages

from hvdcourse.checks.exercise import Exercise, Step
from hvdcourse.checks.hints import LEVELS, hints_for
from hvdcourse.checks.learner_files import solution_of_step
from hvdcourse.checks.manifest import EXERCISES
from hvdcourse.paths import NOTEBOOKS, PROJECT

PAGES = Path(__file__).parent
SOURCE = PROJECT / "build" / "book" / "source"
NAMES = [exercise.name for exercise in EXERCISES]
LESSONS = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
HOROVOD_ON_TENSORFLOW = PROJECT / "tools/horovod_on_tensorflow/README.md"
# The book has menus of its own.
NAVIGATION = re.compile(r"^\[(?:previous: |home\]|Home: ).*\n*", re.MULTILINE)
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)(#[^)\s]*)?\)")
# Sphinx makes the same anchors of the headings themselves.
ANCHOR_IN_HEADING = re.compile(r'^(#+ )<a id="[\w-]+"></a>', re.MULTILINE)
PARAGRAPH = re.compile(r"(?:# .*\n)+")


def linked(text: str, page: Path) -> str:
    """Return Markdown with links to the book's pages, and bring along the files it links to."""

    def link(match: re.Match[str]) -> str:
        target, anchor = match[1], (match[2] or "").lower()
        file = (page.parent / target).resolve()
        if file.parent.name == "source_code" and file.stem in NAMES:
            target = f"../exercises/{file.stem}.md"
        elif target == "recorded/":
            target = "../recorded.md"
        elif file.is_file() and file.suffix not in (".md", ".ipynb"):
            copy = SOURCE / file.relative_to(PROJECT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
        return f"]({target}{anchor})"

    return ANCHOR_IN_HEADING.sub(r"\1", LINK.sub(link, NAVIGATION.sub("", text)))


def own_page(name: str) -> str:
    """Return a page of this folder, with links as they are from the root of the sources."""
    text = (PAGES / name).read_text()
    return text.replace("](../", "](").replace("](points/", "](book/points/")


def write(page: str, text: str) -> None:
    """Write one of Sphinx's sources."""
    path = SOURCE / page
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def lesson(notebook: nbformat.NotebookNode, path: Path) -> nbformat.NotebookNode:
    """Return a lesson for the book: links changed, and every plot with a text alternative."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    heading, known = "", captions()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = linked(cell.source, path)
            heading = next(reversed(re.findall("^#+ (.*)", cell.source, re.MULTILINE)), heading)
        else:
            describe_pictures(cell, heading, known)
    notebook.cells = [cell for cell in notebook.cells if cell.source.strip()]
    return notebook


def folded(summary: str, content: str) -> str:
    """Return Markdown that is shown when its summary is clicked."""
    return f"<details><summary>{summary}</summary>\n\n{content.strip()}\n\n</details>\n"


def python(code: str) -> str:
    """Return a block of code."""
    return f"```python\n{code}\n```"


def step_help(exercise: Exercise, step: Step) -> str:
    """Return the hints for a step, one fold each, and its solution."""
    question, place, shape = hints_for(exercise.name, step.number)
    texts = zip(LEVELS, (question, place, f"```text\n{shape}\n```"), strict=True)
    hints = [folded(f"Hint {n}: {name}", text) for n, (name, text) in enumerate(texts, 1)]
    solution = folded("Solution", python(solution_of_step(exercise, step.number)))
    return f"### Step {step.number}. {step.title}\n\n" + "".join([*hints, solution])


def exercise_page(exercise: Exercise, lessons: dict[str, nbformat.NotebookNode]) -> str:
    """Return the page of an exercise. ``lessons`` are the notebooks by name."""
    name = exercise.name
    where, verdicts = [], []
    # Lesson 0 only tries the first step of an exercise of lesson 1.
    for stem in (stem for stem in lessons if stem >= exercise.notebook):
        for cell in lessons[stem].cells:
            if cell.id == f"verdicts-{name}".replace("_", "-")[:64]:
                where.append(f"[lesson {int(stem[:2])}](../notebooks/{stem}.ipynb)")
                verdicts.append(cell.source)
    titles = "\n".join(f"{step.number}. {step.title}" for step in exercise.steps)
    helps = "\n".join(step_help(exercise, step) for step in exercise.steps)
    return f"""# {name}.py

An exercise of {" and ".join(where)}. You edit `source_code/{name}.py`; its first lines say how to
start it.
To check it, and to get a hint for step 1:

    hvdcourse check {name}
    hvdcourse hint {name} 1

## What must be true

{titles}

## The script, as you get it

```{{literalinclude}} /source_code/{name}.py
```

## Hints and solution, step by step

{helps}

## What the check says

{chr(10).join(verdicts)}

## The whole solution

{folded("solutions/" + name + ".py", f"```{{literalinclude}} /solutions/{name}.py{chr(10)}```")}
"""


def exercises_page() -> str:
    """Return the page that lists the exercises."""
    rows = [
        f"| [{exercise.name}.py]({exercise.name}.md) "
        f"| {int(exercise.notebook[:2])} | {len(exercise.steps)} |"
        for exercise in EXERCISES
    ]
    return f"""# Exercises

You do these in `source_code/`, and `hvdcourse check NAME` judges what your script does. Each page
has the script as you get it. Hints and solutions are folded.

| script | lesson | steps |
|---|---|---|
{chr(10).join(rows)}

```{{toctree}}
:hidden:
{chr(10).join(NAMES)}
```
"""


def recorded_page() -> str:
    """Return the page of the recorded runs: each grid's own words, after those of this folder."""
    folder = NOTEBOOKS / "recorded"
    text = own_page("recorded.md")
    for grid in sorted(folder.glob("*.yaml")):
        head = PARAGRAPH.match(grid.read_text())
        about = re.sub("^# ?", "", head[0] if head else "", flags=re.MULTILINE)
        records = f"[records](notebooks/recorded/{grid.stem}.jsonl)"
        text += (
            f"\n### {grid.stem}\n\n{about}\n[Grid](notebooks/recorded/{grid.name}), {records}.\n"
        )
    unnamed = [file.name for file in folder.glob("[!.]*") if f"/{file.name})" not in text]
    if unnamed:
        raise SystemExit(f"error: book/recorded.md does not tell of {', '.join(unnamed)}")
    return text


def main() -> None:
    """Write all sources anew."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    stored = {path.stem: nbformat.read(path, as_version=4) for path in LESSONS}
    for exercise in EXERCISES:
        for folder in ("source_code", "solutions"):
            write(
                f"{folder}/{exercise.name}.py",
                (PROJECT / folder / f"{exercise.name}.py").read_text(),
            )
        write(f"exercises/{exercise.name}.md", exercise_page(exercise, stored))
    write("exercises/index.md", exercises_page())
    for path in (*NOTEBOOKS.glob("*.md"), HOROVOD_ON_TENSORFLOW):
        write(str(path.relative_to(PROJECT)), linked(path.read_text(), path))
    for path in PAGES.glob("*.md"):
        write(path.name, linked(own_page(path.name), PROJECT / path.name))
    for page, text in mistakes_pages().items():
        write(page, text)
    write("recorded.md", linked(recorded_page(), PROJECT / "recorded.md"))
    for path in LESSONS:
        text = nbformat.writes(lesson(stored[path.stem], path))
        write(str(path.relative_to(PROJECT)), text)


if __name__ == "__main__":
    main()
