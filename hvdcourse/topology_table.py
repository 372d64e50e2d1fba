"""Reads the table that ``nvidia-smi topo -m`` prints, of any driver's layout."""

import re
import shutil
import subprocess
from itertools import combinations
from pathlib import Path

from hvdcourse.topology import GPU, MEANINGS, BadTopology, Link, Topology

_UNDERLINE = re.compile(r"\x1b\[[0-9;]*m")
_AFFINITIES = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_NUMBERS = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


def parse_topology(text: str, name: str = "the table") -> Topology:
    """Read what ``nvidia-smi topo -m`` printed; lines that begin with ``#`` are comments.

    Args:
        text: the table, with or without its legend, of any driver's layout.
        name: what to call it in errors, such as the file's name.

    Raises:
        BadTopology: the table is empty, cut off, not symmetric, or has an unknown kind of path.
    """
    lines = [_UNDERLINE.sub("", line).rstrip("\r") for line in text.splitlines()]
    lines = [line for line in lines if not line.startswith("#")]
    body, legend = _split(lines, name)
    devices, columns = _header(body[0], name)
    links: dict[tuple[str, str], Link] = {}
    affinities: dict[str, dict[str, str | None]] = {device: {} for device in devices}
    missing = set(devices)
    for line in body[1:]:
        row, cells, rest = _row(line, devices, name)
        links |= _links(row, cells, devices, name)
        missing.discard(row)
        if GPU.fullmatch(row):
            affinities[row] = _affinities(row, rest, columns, name)
    if missing:
        rows = ", ".join(device for device in devices if device in missing)
        raise BadTopology(f"{name} is cut off: it has no row {rows}; print it again")
    _symmetric(devices, links, name)
    gpus = [device for device in devices if GPU.fullmatch(device)]
    cpus, numa, own = ({gpu: affinities[gpu].get(column) for gpu in gpus} for column in _AFFINITIES)
    adapters = dict(re.findall(r"^\s*(NIC\d+):\s+(\S+)", "\n".join(legend), re.MULTILINE))
    return Topology(devices, links, cpus, numa, own, adapters)


def _split(lines: list[str], name: str) -> tuple[list[str], list[str]]:
    """Return the table's lines from its header on, and what follows it."""
    first = next((n for n, line in enumerate(lines) if GPU.match(line.strip())), None)
    if first is None:
        raise BadTopology(f"{name} is empty: it has no line that begins with GPU0; is there a GPU?")
    ends = (n for n in range(first, len(lines)) if not lines[n].strip() or "Legend" in lines[n])
    last = next(ends, len(lines))
    return lines[first:last], lines[last:]


def _header(line: str, name: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the devices and the affinity columns that the header names."""
    columns = [title for title in _AFFINITIES if title in line]
    for title in columns:
        line = line.replace(title, "")
    devices = tuple(line.split())
    if "X" in devices:
        raise BadTopology(f"{name} has no header line with the devices' names; print it again")
    if len(set(devices)) < len(devices):
        raise BadTopology(f"{name} names a device twice in its header: {' '.join(devices)}")
    return devices, columns


def _row(line: str, devices: tuple[str, ...], name: str) -> tuple[str, list[str], list[str]]:
    """Return a row's device, its cells and what stands behind them."""
    # The tool separates by tabs and leaves unknown affinities blank; a pasted table has spaces.
    fields = [one.strip() for one in line.strip(" ").split("\t" if "\t" in line else None)]
    row, cells, rest = fields[0], fields[1 : 1 + len(devices)], fields[1 + len(devices) :]
    if row not in devices:
        raise BadTopology(f"{name} has a row {row!r} that its header does not name")
    if len(cells) < len(devices) or not all(cells):
        found = sum(1 for cell in cells if cell)
        raise BadTopology(f"{name} is cut off: row {row} has {found} of {len(devices)} cells")
    return row, cells, rest


def _links(
    row: str, cells: list[str], devices: tuple[str, ...], name: str
) -> dict[tuple[str, str], Link]:
    """Return the paths of one row."""
    links = {}
    for device, cell in zip(devices, cells, strict=True):
        if (cell == "X") != (device == row):
            raise BadTopology(
                f"{name}: row {row}, column {device} is {cell}; X is for a device itself"
            )
        if cell == "X":
            continue
        try:
            links[row, device] = Link.parse(cell)
        except ValueError:
            known = ", ".join(MEANINGS)
            raise BadTopology(
                f"{name}: row {row}, column {device} is {cell!r}, not one of {known}"
            ) from None
    return links


def _affinities(row: str, rest: list[str], columns: list[str], name: str) -> dict[str, str | None]:
    """Return what stands in one GPU's affinity columns."""
    if len(rest) < len(columns):
        raise BadTopology(f"{name} is cut off: row {row} has no {columns[len(rest)]}")
    # The tool prints a tab too many before the last of three columns.
    values = rest[:2] + rest[-1:] if len(columns) == 3 else rest[: len(columns)]
    for column, value in zip(columns, values, strict=True):
        if value not in ("", "N/A") and not _NUMBERS.fullmatch(value):
            raise BadTopology(f"{name}: row {row}, {column} is {value!r}, not like 0-19,40-59")
    known = (None if value in ("", "N/A") else value for value in values)
    return dict(zip(columns, known, strict=True))


def _symmetric(devices: tuple[str, ...], links: dict[tuple[str, str], Link], name: str) -> None:
    """Refuse a table with two opinions on one pair."""
    for one, other in combinations(devices, 2):
        there, back = links[one, other], links[other, one]
        if there != back:
            raise BadTopology(
                f"{name} is not symmetric: {one} to {other} is {there}, {other} to {one} is {back}"
            )


def read_topology(path: str | Path) -> Topology:
    """Read a table from a file; OSError where there is none, BadTopology where it is not one."""
    return parse_topology(Path(path).read_text(), Path(path).name)


def ask_nvidia_smi() -> str | None:
    """Return what ``nvidia-smi topo -m`` prints on this machine, None without that program.

    Raises:
        BadTopology: the program failed; the message has its last line.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        done = subprocess.run([program, "topo", "-m"], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        raise BadTopology(
            "nvidia-smi topo -m did not end in 60 s; have the driver looked at"
        ) from None
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip().splitlines() or ["nothing"]
        raise BadTopology(f"nvidia-smi topo -m failed: {said[-1]}; run `hvdcourse doctor`")
    return done.stdout
