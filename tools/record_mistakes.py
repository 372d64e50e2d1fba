"""Keeps what checks say of the mistakes that the tests make, for the book: ``make mistakes``."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

from hvdcourse.files import write_whole
from hvdcourse.paths import PROJECT


def main() -> None:
    """Read pytest's report, in JUnit's format, and write ``book/mistakes.json``."""
    report = ElementTree.parse(Path(sys.argv[1]))
    messages = {message.get("name"): message.get("value") for message in report.iter("property")}
    write_whole(
        PROJECT / "book" / "mistakes.json", json.dumps(messages, indent=1, sort_keys=True) + "\n"
    )


if __name__ == "__main__":
    main()
