"""What a machine's kernel tells is shown; what it hides is said to be hidden, never made up."""

import json
import os
import stat
from dataclasses import replace
from io import StringIO

import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba
from rich.console import Console

from hvdcourse.machine import expand, lscpu, parse_size, read_machine, shorten, show_size
from hvdcourse.machine_plot import core_groups, plot_machine

SOCKETS, CORES = 2, 3  # each core has 2 hardware threads, numbered as on most servers


def write(file, text: object) -> None:
    """Write a file of one line, as the kernel does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")


@pytest.fixture
def sys(tmp_path, monkeypatch):
    """Make a /sys of 2 sockets, 6 cores and 12 hardware threads, and a machine without lscpu."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    total = SOCKETS * CORES
    for number in range(2 * total):
        core = number % total
        socket = core // CORES
        folder = tmp_path / f"sys/devices/system/cpu/cpu{number}"
        own = f"{core},{core + total}"
        all_of_socket = ",".join(
            f"{first}-{first + CORES - 1}" for first in (socket * CORES, total + socket * CORES)
        )
        write(folder / "topology/thread_siblings_list", own)
        write(folder / "topology/physical_package_id", socket)
        (folder / f"node{socket}").mkdir()
        caches = [(1, "Data", "48K", own), (1, "Instruction", "32K", own)]
        caches += [(2, "Unified", "2048K", own), (3, "Unified", "30720K", all_of_socket)]
        for index, values in enumerate(caches):
            names = ("level", "type", "size", "shared_cpu_list")
            for name, value in zip(names, values, strict=True):
                write(folder / f"cache/index{index}/{name}", value)
    (tmp_path / "sys/devices/system/cpu/cpufreq").mkdir()
    return tmp_path / "sys"


def interface(sys, name: str, state: str, speed: object = None) -> None:
    """Add a network interface."""
    write(sys / f"class/net/{name}/operstate", state)
    if speed is not None:
        write(sys / f"class/net/{name}/speed", speed)


def shown(machine) -> dict[str, str]:
    """Return the lines of the machine's table."""
    return dict(machine.rows())


def test_sockets_cores_threads_and_caches_are_counted(sys):
    lines = shown(read_machine(sys))
    assert lines["sockets"] == lines["NUMA nodes"] == "2"
    assert (lines["cores"], lines["hardware threads"]) == ("6", "12")
    assert lines["L1d cache"] == "6 of 48 KiB, each for one core"
    assert lines["L2 cache"] == "6 of 2 MiB, each for one core"
    assert lines["L3 cache"] == "2 of 30 MiB, each shared by 3 cores"


def test_a_cache_knows_its_hardware_threads(sys):
    machine = read_machine(sys)
    assert [cache.threads for cache in machine.caches if cache.level == 3] == [
        (0, 1, 2, 6, 7, 8),
        (3, 4, 5, 9, 10, 11),
    ]
    assert [(socket, cores) for socket, _, cores in core_groups(machine)] == [
        (0, [0, 1, 2]),
        (1, [3, 4, 5]),
    ]


def test_everything_is_plain_data(sys):
    interface(sys, "eth0", "up", 25000)
    data = json.loads(json.dumps(read_machine(sys).to_dict()))
    counts = {"sockets": 2, "numa_nodes": 2, "cores": 6, "hardware_threads": 12}
    assert data["counts"] == counts
    assert data["allowed"] == sorted(os.sched_getaffinity(0))
    assert data["links"] == [{"name": "eth0", "megabits": 25000}]


def test_a_core_that_is_switched_off_does_not_count(sys):
    write(sys / "devices/system/cpu/cpu11/online", 0)
    write(sys / "devices/system/cpu/cpu10/online", 1)
    assert shown(read_machine(sys))["hardware threads"] == "11"


def test_network_links_and_their_speed(sys):
    interface(sys, "eth0", "up", 25000)
    interface(sys, "eth1", "down", 1000)
    interface(sys, "eth2", "up", -1)
    interface(sys, "lo", "unknown")
    interface(sys, "usb0", "up", 100)
    write(sys / "class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)")
    links = {name: told for name, told in shown(read_machine(sys)).items() if "link" in name}
    assert links == {
        "network link eth0": "25 Gbit/s",
        "network link eth2": "speed not told",
        "network link lo": "speed not told",
        "network link usb0": "100 Mbit/s",
        "network link mlx5_0 port 1": "100 Gbit/s",
    }


def test_what_is_hidden_is_said_to_be_not_told(sys):
    for folder in (sys / "devices/system/cpu").glob("cpu[0-9]*"):
        for name in ("thread_siblings_list", "physical_package_id"):
            (folder / "topology" / name).unlink()
        for node in folder.glob("node*"):
            node.rmdir()
        for size in folder.glob("cache/*/size"):
            size.unlink()
    machine = read_machine(sys)
    lines = shown(machine)
    hidden = ("processor", "sockets", "NUMA nodes", "cores", "caches")
    assert {name: lines[name] for name in hidden} == dict.fromkeys(hidden, "not told")
    assert lines["hardware threads"] == "12"
    counts = machine.to_dict()["counts"]
    assert counts == {"sockets": None, "numa_nodes": None, "cores": None, "hardware_threads": 12}


def test_caches_without_cores_are_counted_by_hardware_threads(sys):
    for file in sys.glob("devices/system/cpu/cpu*/topology/thread_siblings_list"):
        file.unlink()
    lines = shown(read_machine(sys))
    assert lines["L1d cache"] == "6 of 48 KiB, each shared by 2 hardware threads"


def test_minus_one_is_linux_for_not_told(sys):
    for file in sys.glob("devices/system/cpu/cpu*/topology/physical_package_id"):
        write(file, -1)
    assert read_machine(sys).to_dict()["counts"]["sockets"] is None


def test_an_empty_sys_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    machine = read_machine(tmp_path / "nothing")
    assert set(machine.to_dict()["counts"].values()) == {None}
    machine.print(Console(file=StringIO()))
    plt.close(plot_machine(machine))


def test_this_machine_is_read_and_printed():
    told = read_machine()
    output = StringIO()
    told.print(Console(file=output, width=120))
    assert f"{len(told.allowed)}: {shorten(told.allowed)}" in output.getvalue()
    assert {one.number for one in told.threads} >= set(told.allowed) or not told.threads


def pretend_lscpu(folder, monkeypatch, script: str) -> None:
    """Make an lscpu of ours the only program there is."""
    program = folder / "bin/lscpu"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent))


def test_the_processor_s_name_comes_from_lscpu(sys, tmp_path, monkeypatch):
    """Versions since 2.37 put lines below others, earlier ones do not."""
    name = {"field": "Model name:", "data": "Made-up 9000"}
    nested = {"lscpu": [{"field": "Vendor ID:", "data": "Nobody", "children": [name]}]}
    hypervisor = {"field": "Hypervisor vendor:", "data": "KVM"}
    nested["lscpu"].append({"field": "Virtualization:", "data": None, "children": [hypervisor]})
    for answer in (nested, {"lscpu": [name, hypervisor]}):
        pretend_lscpu(tmp_path, monkeypatch, f"echo '{json.dumps(answer)}'")
        lines = shown(read_machine(sys))
        assert lines["processor"] == "Made-up 9000, in a virtual machine (KVM)"


@pytest.mark.parametrize(
    "script",
    [
        "exit 1",
        "echo lscpu: cannot open /proc/cpuinfo >&2; exit 1",
        "echo 'Model name: plain text'",
        "echo '[]'",
        "echo '{}'",
        """echo '{"lscpu": [{"data": "no field"}]}'""",
        """echo '{"lscpu": [{"field": "Model name:", "data": "-"}]}'""",
    ],
)
def test_an_lscpu_that_does_not_answer_is_as_none(script, sys, tmp_path, monkeypatch):
    pretend_lscpu(tmp_path, monkeypatch, script)
    assert lscpu() == {}
    assert read_machine(sys).processor is None


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-3,8", (0, 1, 2, 3, 8)), ("5", (5,)), ("", ()), (None, ()), ("\n", ()), ("x-3", ())],
)
def test_lists_of_threads_as_linux_writes_them(text, numbers):
    assert expand(text) == numbers


def test_lists_are_written_as_they_are_read():
    for text in ("0-3,8", "5", "0,2,4", "0-19,40-59", ""):
        assert shorten(expand(text)) == text


def test_sizes():
    sizes = {"512K": 524288, "30720K": 31457280, "2M": 2097152, "0": 0, "": None, "big": None}
    assert {text: parse_size(text) for text in sizes} == sizes
    assert parse_size(None) is None
    assert [show_size(size) for size in (64, 32768, 2**20, 1310720)] == [
        "64 bytes", "32 KiB", "1 MiB", "1.2 MiB",
    ]  # fmt: skip


def test_the_picture_shows_each_core_and_greys_those_of_others(sys):
    machine = replace(read_machine(sys), allowed=(0, 6))
    figure = plot_machine(machine)
    grey = to_rgba("#D9D9D9")
    assert sum(patch.get_facecolor() == grey for patch in figure.axes[0].patches) == 5
    texts = [text.get_text() for text in figure.axes[0].texts]
    plt.close(figure)
    assert sum("threads" in text for text in texts) == 6
    assert "threads 0, 6\nL1d 48 KiB\nL2 2 MiB" in texts
    assert texts.count("L3 30 MiB, shared") == 2


def test_of_a_large_machine_only_a_part_is_drawn(sys):
    small = read_machine(sys)
    threads = tuple(
        replace(one, number=one.number + 12 * n, core=one.core + 12 * n, socket=n)
        for n in range(20)
        for one in small.threads
    )
    figure = plot_machine(replace(small, threads=threads, caches=()))
    assert "and 14 more groups, 84 cores" in [text.get_text() for text in figure.axes[0].texts]
    plt.close(figure)
