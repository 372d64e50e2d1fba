"""The commands ``hvdcourse cluster up``, ``status``, ``exec`` and ``down``."""

import json
import sys
from typing import Annotated

import typer

from hvdcourse.cluster import cluster
from hvdcourse.cluster.execute import execute_here
from hvdcourse.errors import checked_limit

app = typer.Typer(
    no_args_is_help=True,
    help="Several hosts on this one machine, to try what needs more than one. Needs root.",
)

Bandwidth = Annotated[str | None, typer.Option(help="Of each host's link, such as 1gbit.")]


@app.command()
def up(
    hosts: Annotated[str, typer.Option(help="How many hosts to make.")] = "2",
    slots: Annotated[str, typer.Option(help="Ranks a host holds: 2, or 2,1,1.")] = "2",
    bandwidth: Bandwidth = None,
) -> None:
    """Make hosts node1, node2 …, each with its own network, name, address and sshd."""
    for host in cluster.up(hosts, slots, bandwidth):
        print(f"{host.name}  {host.address}  slots {host.slots}")
    print("On a host: hvdcourse cluster exec node1 -- COMMAND")


@app.command()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show which hosts are up. Exit status 0: they are up and whole."""
    current = cluster.status()
    if as_json:
        print(json.dumps(current, indent=2))
    elif not current["hosts"]:
        print("no hosts are up")
    else:
        for row in current["hosts"]:
            state = "running" if row["running"] else "not running"
            print(f"{row['name']}  {row['address']}  slots {row['slots']}  {state}")
        print(f"bandwidth: {current['bandwidth'] or 'not limited'}")
    raise typer.Exit(0 if current["up"] else 1)


@app.command("exec")
def execute(
    host: Annotated[str, typer.Argument(help="The host, such as node1.")],
    command: Annotated[list[str], typer.Argument(help="The command, after --.")],
    timeout: Annotated[str, typer.Option(help="Seconds until it is ended.")] = "600",
) -> None:
    """Run a command on a host: hvdcourse cluster exec node1 -- ssh node2 hostname."""
    try:
        status = execute_here(cluster.find_host(host), command, checked_limit(timeout, "timeout"))
    except cluster.CommandFailed as failed:
        print(f"error: {failed}", file=sys.stderr)
        status = failed.completed.returncode
    raise typer.Exit(status)


@app.command()
def down() -> None:
    """Remove the hosts and everything that runs on them."""
    print("the hosts are gone" if cluster.down() else "no hosts were up")
