"""The commands of the README's section on more than one host do what it says."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from watching import HVDCOURSE

from hvdcourse.paths import PROJECT


def commands() -> list[list[str]]:
    """Return the section's command lines, without the installation."""
    section = (PROJECT / "README.md").read_text().partition("## More than one host\n")[2]
    block = section.partition("\n## ")[0].replace("\\\n", " ")
    lines = re.findall(r"^    sudo (\.venv/bin/hvdcourse .*)$", block, re.MULTILINE)
    return [shlex.split(line) for line in lines]


@pytest.mark.timeout(420)
def test_the_readmes_commands_train_on_three_hosts(nothing_changed):
    outputs = []
    for words in commands():
        assert words[0] == str(Path(".venv/bin/hvdcourse"))
        done = subprocess.run(
            [HVDCOURSE, *words[1:]], cwd=PROJECT, capture_output=True, text=True, timeout=380
        )
        assert done.returncode == 0, done.stdout + done.stderr
        outputs.append(done.stdout)
    assert len(outputs) == 3
    assert "test accuracy" in outputs[1]
    assert outputs[2] == "the hosts are gone\n"
