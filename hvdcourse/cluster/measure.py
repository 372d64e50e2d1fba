"""What a link between hosts makes of messages: the measurements of lesson 5 on shaped links.

``sudo .venv/bin/python -m hvdcourse.cluster.measure`` prints them as JSON, which is how
``notebooks/recorded/links.json`` was made. It takes about a minute.
"""

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from hvdcourse.cluster.cluster import hosts
from hvdcourse.cluster.commands import horovodrun_command
from hvdcourse.cluster.execute import execute
from hvdcourse.cluster.plan import Host
from hvdcourse.paths import SOLUTIONS
from hvdcourse.rank.run_folder import RunFolder
from hvdcourse.rank.variables import RUN_FOLDER_VARIABLE

SIZES = (1_000, 16_000, 256_000, 1_000_000, 4_000_000, 16_000_000, 64_000_000)
RUN_SECONDS = 120.0
WAYS = (
    "unfused",
    "fused",
    "fused, fp16",
)  # in which 60 gradients of 64 KB, ready at once, are sent


def reports(
    on: Sequence[Host],
    script: Sequence[str],
    backend: str = "gloo",
    environment: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Run a script with one rank for each slot; return by rank the lists of its reports, by name.

    Raises:
        CommandFailed: it failed, or was ended at its time limit.
    """
    with tempfile.TemporaryDirectory(prefix="hvdcourse-") as path:
        variables = {**(environment or {}), RUN_FOLDER_VARIABLE: path}
        command = horovodrun_command(on, None, backend, script)
        execute(on[0], command, RUN_SECONDS, variables, quiet=True)
        ranks: list[dict[str, Any]] = []
        while entries := RunFolder(path).read_lines(len(ranks), "evidence"):
            by_name: dict[str, Any] = {}
            for entry in entries:
                by_name.setdefault(entry["report"], []).append(entry["value"])
            ranks.append(by_name)
    return ranks


def measure_links(bandwidth: str = "1gbit") -> dict[str, Any]:
    """Return seconds on hosts with one rank each, over links of this bandwidth.

    ``allreduce`` has pairs of a size in bytes and the seconds of each repeat, on two hosts;
    ``gradients`` the seconds of 60 gradients, by way; ``messages`` those of 3.36 MB on four hosts,
    by a parameter server and by a ring.

    Raises:
        ClusterError: this machine cannot have several hosts.
        CommandFailed: a run failed.
    """
    times, messages = str(SOLUTIONS / "allreduce_times.py"), str(SOLUTIONS / "messages.py")
    with hosts(4, slots=1, bandwidth=bandwidth) as four:
        two, sizes = four[:2], ",".join(map(str, SIZES))
        by_size = reports(two, [times, "--bytes", sizes, "--repeats", "11"])[0]["allreduce"]
        gradients = [times, "--bytes", "64000", "--tensors", "60"]
        unfused = reports(two, gradients, environment={"HOROVOD_FUSION_THRESHOLD": "0"})
        fused = reports(two, [*gradients, "--compression", "none,fp16"])
        entries = unfused[0]["allreduce"] + fused[0]["allreduce"]
        by_rank = reports(four, [messages], backend="mpi")
    return {
        "bandwidth": bandwidth,
        "measured": time.strftime("%Y-%m-%d"),
        "allreduce": [(entry["bytes"], entry["seconds"]) for entry in by_size],
        "gradients": dict(zip(WAYS, (entry["seconds"] for entry in entries), strict=True)),
        "messages": {
            method: max(rank[method][0]["seconds"] for rank in by_rank)
            for method in ("parameter_server", "ring")
        },
    }


if __name__ == "__main__":
    print(json.dumps(measure_links()))
