"""Where the course's own folders are, and the learner's."""

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
# On a server that has the course once, read-only, each learner works in a copy of these folders.
COPY_VARIABLE = "HVDCOURSE_COPY"
COPY = Path(os.environ.get(COPY_VARIABLE) or PROJECT).resolve()
SOURCE_CODE = COPY / "source_code"
SOLUTIONS = PROJECT / "solutions"
IMAGES = PROJECT / "images"
NOTEBOOKS = PROJECT / "notebooks"
