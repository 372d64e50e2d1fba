"""What is recorded for the book: a message of each mistake, and no folder of a machine."""

import json
import sys

import pytest
from mistakes_pages import all_mistakes
from record_mistakes import RECORD, portable

from hvdcourse.paths import PROJECT


@pytest.mark.parametrize("environment", [PROJECT / ".venv", PROJECT.parent / "another"])
def test_a_message_names_no_folder_of_the_machine(environment, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(environment))
    message = f'File "{environment}/lib/keras.py"; File "{PROJECT}/hvdcourse/errors.py"'
    expected = 'File "/course/.venv/lib/keras.py"; File "/course/hvdcourse/errors.py"'
    assert portable(message) == expected


def test_every_mistake_that_the_tests_make_has_its_message_in_the_book():
    assert sorted(json.loads(RECORD.read_text())) == sorted(all_mistakes())
