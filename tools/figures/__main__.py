"""``python -m figures [FOLDER]``: write all figures, into ``images/`` by default."""

import argparse
from pathlib import Path

from figures import write_figures
from hvdcourse.paths import IMAGES


def main() -> None:
    """Write the figures and name each file."""
    parser = argparse.ArgumentParser(prog="python -m figures", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=IMAGES)
    for file in write_figures(parser.parse_args().folder):
        print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
