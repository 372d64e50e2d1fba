"""Where the course's own folders are."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
SOURCE_CODE = PROJECT / "source_code"
SOLUTIONS = PROJECT / "solutions"
IMAGES = PROJECT / "images"
NOTEBOOKS = PROJECT / "notebooks"
