"""What is recorded for the book names no folder of the machine that recorded it."""

import sys

import pytest
from record_mistakes import portable

from hvdcourse.paths import PROJECT


@pytest.mark.parametrize("environment", [PROJECT / ".venv", PROJECT.parent / "another"])
def test_a_message_names_no_folder_of_the_machine(environment, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(environment))
    message = f'File "{environment}/lib/keras.py"; File "{PROJECT}/hvdcourse/errors.py"'
    expected = 'File "/course/.venv/lib/keras.py"; File "/course/hvdcourse/errors.py"'
    assert portable(message) == expected
