"""What lesson 8 quotes: the lesson names each source, and a run has a number for each epoch."""

import json

import nbformat

from hvdcourse.paths import NOTEBOOKS

PUBLISHED = json.loads((NOTEBOOKS / "recorded/published_results.json").read_text())


def test_the_lesson_links_to_the_source_of_all_that_it_quotes():
    lesson = nbformat.read(NOTEBOOKS / "08_reading_results.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in lesson.cells if cell.cell_type == "markdown")
    for group in PUBLISHED.values():
        assert group["source"].startswith("https://")
        assert f"]({group['source']})" in text


def test_each_run_has_a_number_for_each_of_its_epochs():
    assert {len(run["images_per_second"]) for run in PUBLISHED["painters"]["runs"]} == {10}
    assert {len(run["epoch_seconds"]) for run in PUBLISHED["mnist"]["runs"]} == {8}
