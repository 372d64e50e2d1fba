"""Keeps what checks say of the mistakes that the tests make, for the book: ``make mistakes``."""

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

from mistakes_pages import all_mistakes

from hvdcourse.files import write_whole
from hvdcourse.paths import PROJECT

RECORD = PROJECT / "book" / "mistakes.json"
# Where a test has its script, as a traceback names it.
SCRIPT_OF_A_TEST = re.compile(r'(?<=File ")/\S*/source/(?=\w+\.py")')


def portable(message: str) -> str:
    """Return a message without this machine's folders."""
    message = SCRIPT_OF_A_TEST.sub("/course/source_code/", message)
    # The environment may lie outside of the project.
    for folder, shown in ((sys.prefix, "/course/.venv"), (str(PROJECT), "/course")):
        message = message.replace(folder, shown)
    return message


def main() -> None:
    """Read pytest's report, in JUnit's format; messages of other mistakes that are made stay."""
    report = ElementTree.parse(Path(sys.argv[1]))
    new = {
        message.get("name"): portable(message.get("value")) for message in report.iter("property")
    }
    kept = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    made = all_mistakes()
    messages = {name: text for name, text in (kept | new).items() if name in made}
    write_whole(RECORD, json.dumps(messages, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
