"""What ``hvdcourse challenge`` does: judge, keep the score, and show the leaderboard."""

import json
import sys
from pathlib import Path

from rich.console import Console

from hvdcourse.challenge import leaderboard
from hvdcourse.challenge.judge import challenge
from hvdcourse.challenge.score import Score
from hvdcourse.checks.verdict import NotRemembered


def judge_and_show(
    console: Console,
    folder: Path | None,
    data: str,
    name: str | None,
    file: Path | None,
    as_json: bool,
) -> Score:
    """Judge the program and print its score; with a name, add it to the leaderboard.

    What each run is goes to stderr, so that ``--json`` has stdout for itself.

    Raises:
        BadInput: a wrong name, or no program or images that can be judged.
        NotRemembered: the score was printed, but cannot be added to the leaderboard.
    """
    if name is not None:
        leaderboard.checked_name(name)
        file = file or leaderboard.default_file()
    score = challenge(folder, data=data, say=lambda line: print(line, file=sys.stderr, flush=True))
    if as_json:
        print(json.dumps(score.to_dict(), indent=2))
    else:
        console.print(score)
    if name is not None and file is not None:
        try:
            leaderboard.add(score, name, file)
        except OSError as error:
            raise NotRemembered(f"the score was not kept: {error}") from None
    if file is not None and not as_json:
        console.print(leaderboard.table(leaderboard.read(file)))
    return score


def show_leaderboard(console: Console, file: Path | None, as_json: bool) -> None:
    """Print the leaderboard: each name's best score. Raises OSError where it cannot be read."""
    entries = leaderboard.read(file if file is not None else leaderboard.default_file())
    if as_json:
        print(json.dumps(entries, indent=2))
    else:
        console.print(leaderboard.table(entries))
