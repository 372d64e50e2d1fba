"""Run an elastic job on this machine, and disturb it: ``run_elastic("elastic.py", plan=…)``."""

import json
import os
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hvdcourse.errors import BadInput
from hvdcourse.launch.command_line import arguments_from
from hvdcourse.launch.job import Disturbance
from hvdcourse.launch.result import RunFailed, RunResult
from hvdcourse.launch.run import checked_np, find_script, run_quickly
from hvdcourse.machine.gpus import NONE_VISIBLE, visible_gpus

DRIVER = Path(__file__).with_name("elastic_driver.py")


def names_of_this_machine() -> list[str]:
    """Return names under which this machine finds itself, to stand for different hosts.

    When a worker dies, Horovod gives up its whole host: here, each slot has a host of its own. The
    machine's own name is not among them: where it means 127.0.1.1, as Debian has it, Horovod takes
    it for another machine.
    """
    return ["localhost", "127.0.0.1", "127.1"]


def write_discovery(folder: Path, hosts: Sequence[str]) -> tuple[Path, Path]:
    """Write a host discovery script, and the file of hosts that it prints; return both."""
    hosts_file, script = folder / "hosts.txt", folder / "discover_hosts.sh"
    hosts_file.write_text("".join(f"{host}:1\n" for host in hosts))
    script.write_text(f'#!/bin/sh\ncat "{hosts_file}"\n')
    script.chmod(0o755)
    return script, hosts_file


def run_elastic(
    script: str | Path,
    np: int = 2,
    *,
    plan: Sequence[Disturbance] = (),
    min_np: int = 1,
    elastic_timeout: int = 30,
    arguments: Sequence[str] = (),
    timeout: float = 120,
    standstill: float = 60,
    folder: str | Path | None = None,
    quiet: bool = False,
    must_succeed: bool = True,
    **options: Any,
) -> RunResult:
    """Run a script as an elastic job of ``np`` workers, and return what came of it.

    The result is that of the launcher, as the only rank of a run. What the workers told with
    ``report_epoch`` is its history and its evidence; there, ``killed`` and ``added`` say what the
    plan did, and when. See https://horovod.readthedocs.io/en/stable/elastic_include.html

    Args:
        script: the script's path, or its name in ``source_code/``.
        np: how many workers there are at the start, each on a host of its own.
        plan: what happens on the way, in this order: ``Disturbance(after_epoch=3, kill=[1])``
            kills rank 1, ``Disturbance(after_epoch=6, add="127.0.0.1")`` adds a host.
        min_np: with fewer workers than this the job waits for hosts, and then fails.
        elastic_timeout: how many seconds it waits for hosts.
        arguments: the script's command line, as a list of texts.
        timeout: seconds after which the whole job is ended.
        standstill: seconds without any computing or printing after which it is ended; more on a
            slow machine, as for ``hvdcourse.run``.
        folder: where to look for the script instead.
        quiet: print nothing while it runs.
        must_succeed: raise RunFailed unless the job ended well.
        **options: more of the script's command line: ``epochs=3`` becomes ``--epochs 3``.

    Raises:
        BadInput: an argument is wrong; nothing was started.
        RunFailed: the job failed, or a limit was reached. All processes are gone by then.
    """
    path = find_script(script, folder)
    np = checked_np(np)
    hosts = names_of_this_machine()[:np]
    if len(hosts) < np:
        raise BadInput(f"np={np} workers need as many hosts; there are {', '.join(hosts)}")
    added = [disturbance.add for disturbance in plan if disturbance.add]
    for host in set(added) & set(hosts):
        raise BadInput(f"the host {host!r} is there from the start: add another one")
    most = len(hosts) + len(added)
    temporary = tempfile.TemporaryDirectory(prefix="hvdcourse-hosts-", ignore_cleanup_errors=True)
    with temporary as folder_of_hosts:
        discovery_script, hosts_file = write_discovery(Path(folder_of_hosts), hosts)
        command = [
            *("horovodrun", "-np", str(np), "--min-np", str(min_np), "--max-np", str(most)),
            # Horovod hands it to a shell.
            *("--host-discovery-script", shlex.quote(str(discovery_script))),
            *("--elastic-timeout", str(elastic_timeout), "--network-interfaces", "lo"),
            *("python", os.path.relpath(path), *arguments, *arguments_from(options)),
        ]
        if not quiet:
            print("$", shlex.join(command), flush=True)
        job = {
            "np": np,
            "plan": list(map(asdict, plan)),
            "hosts_file": str(hosts_file),
            "command": command,
        }
        result = run_quickly(
            DRIVER,
            1,
            arguments=[json.dumps(job)],
            # Each worker is the first of its host: all would take the same GPU.
            environment=NONE_VISIBLE if visible_gpus() else {},
            timeout=timeout,
            standstill=standstill,
            quiet=quiet,
            must_succeed=False,
        )
    result.elastic = True
    if must_succeed and not result.ok:
        raise RunFailed(result)
    return result
