"""The book's pages on mistakes: what the check says of each that the tests make."""

import json
from importlib import import_module
from pathlib import Path

from hvdcourse.checks.exercise import Exercise
from hvdcourse.checks.manifest import EXERCISES

PAGES = Path(__file__).parent


def mistakes_in(exercise: str, step: int) -> list[str]:
    """Return the names of the mistakes that the tests make in a step."""
    labs = exercise.startswith("lab_")
    rounds = import_module(f"mistakes.{'labs' if labs else exercise}").ROUNDS
    made = [mistake for row in (rounds[exercise] if labs else rounds) for mistake in row.mistakes]
    return [mistake.name for mistake in made if mistake.step == step]


def all_mistakes() -> list[str]:
    """Return what all recorded messages are of: exercise, step and mistake."""
    return [
        f"{exercise.name}, step {step.number}: {name}"
        for exercise in EXERCISES
        for step in exercise.steps
        for name in mistakes_in(exercise.name, step.number)
    ]


def mistakes_page(exercise: Exercise, messages: dict[str, str]) -> str:
    """Return an exercise's page. ``messages`` are recorded, by exercise, step and mistake."""
    parts = [f"# Mistakes in {exercise.name}.py\n"]
    for step in exercise.steps:
        parts.append(f"## Step {step.number}. {step.title}\n")
        for name in mistakes_in(exercise.name, step.number):
            message = messages.get(f"{exercise.name}, step {step.number}: {name}")
            if message is None:
                raise SystemExit(
                    f"error: book/mistakes.json has no message for {name!r} in step {step.number} "
                    f"of {exercise.name}: run `make mistakes NAME={exercise.name}`"
                )
            parts.append(f"**{name}**\n\n```text\n{message}\n```\n")
    return "\n".join(parts)


def mistakes_pages() -> dict[str, str]:
    """Return the pages by their place in the book: one for each exercise, and their list."""
    messages = json.loads((PAGES / "mistakes.json").read_text())
    pages = {
        f"mistakes/{exercise.name}.md": mistakes_page(exercise, messages) for exercise in EXERCISES
    }
    rows = [
        f"| [{exercise.name}.py]({page}) | {len(exercise.steps)} | {text.count('```text')} |"
        for exercise, (page, text) in zip(EXERCISES, pages.items(), strict=True)
    ]
    pages["mistakes.md"] = f"""{(PAGES / "mistakes.md").read_text()}
| script | steps | mistakes |
|---|---|---|
{chr(10).join(rows)}

```{{toctree}}
:hidden:
{chr(10).join(path.removesuffix(".md") for path in pages)}
```
"""
    return pages
