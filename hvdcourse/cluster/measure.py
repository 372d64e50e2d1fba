"""What the ranks of a script report when it runs on several hosts."""

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from hvdcourse.cluster.execute import execute
from hvdcourse.cluster.plan import Host
from hvdcourse.rank.run_folder import RunFolder
from hvdcourse.rank.variables import RUN_FOLDER_VARIABLE


def measure(
    hosts: Sequence[Host],
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    timeout: float = 120,
) -> list[dict[str, Any]]:
    """Run a launch command on the first host, and return by rank what was reported, by name.

    Of what a rank reports several times under one name, a list has all in their order.

    Raises:
        CommandFailed: the command failed, or was ended at its time limit.
    """
    with tempfile.TemporaryDirectory(prefix="hvdcourse-") as path:
        variables = {**(environment or {}), RUN_FOLDER_VARIABLE: path}
        execute(hosts[0], command, timeout, variables, quiet=True)
        ranks: list[dict[str, Any]] = []
        while entries := RunFolder(path).read_lines(len(ranks), "evidence"):
            reports: dict[str, Any] = {}
            for entry in entries:
                if "report" in entry:
                    reports.setdefault(entry["report"], []).append(entry["value"])
            ranks.append(reports)
    return ranks
