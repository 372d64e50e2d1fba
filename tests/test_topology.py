"""The table of nvidia-smi topo -m: read as it is printed, and refused where it is not whole."""

import contextlib
import re
import stat
from itertools import combinations

import pytest
from matplotlib import pyplot as plt

from hvdcourse.exercises import PROJECT
from hvdcourse.topology import MEANINGS, P2P_LEVELS, BadTopology, Link, levels
from hvdcourse.topology_plot import places, plot_matrix, plot_topology
from hvdcourse.topology_table import ask_nvidia_smi, parse_topology, read_topology

RECORDED = PROJECT / "notebooks/recorded"
V100 = RECORDED / "topology_dgx1_v100.txt"
A100 = RECORDED / "topology_a100_nvswitch.txt"
# As drivers since 2023 print it to a pipe, too: underlined header, tabs, a tab too many before N/A.
MODERN = (
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tPIX\t0-63\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNODE\t64-127\t1\t\tN/A\n"
    "NIC0\tPIX\tNODE\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  NV#  = Connection\n\nNIC Legend:\n\n  NIC0: mlx5_0\n\n"
)
SMALL = """
        GPU0    GPU1    GPU2    CPU Affinity    NUMA Affinity
GPU0     X      PIX     SYS     0-3             0
GPU1    PIX      X      NODE    0-3             0
GPU2    SYS     NODE     X      4-7             1
"""


def table(path) -> str:
    """Return the table of a file without its comments and its legend."""
    text = path.read_text()
    return text[text.index("\tGPU0") : text.index("\n\n") + 1]


def test_every_v100_of_the_cube_mesh_has_its_six_nvlinks():
    topology = read_topology(V100)
    assert len(topology.gpus) == 8
    assert len(topology.nics) == 4
    assert {gpu: topology.nvlinks(gpu) for gpu in topology.gpus} == dict.fromkeys(topology.gpus, 6)
    assert not topology.switched


def test_the_cube_mesh_is_two_full_quads_and_four_links_between_them():
    topology = read_topology(V100)
    left, right = topology.gpus[:4], topology.gpus[4:]
    for quad in (left, right):
        assert all(topology.link(*pair).nvlinks for pair in combinations(quad, 2))
    across = [(a, b) for a in left for b in right if topology.link(a, b).nvlinks]
    assert across == list(zip(left, right, strict=True))
    assert {str(topology.link(a, b)) for a in left for b in right} == {"NV1", "NV2", "SYS"}


def test_every_a100_reaches_every_other_by_its_twelve_nvlinks():
    topology = read_topology(A100)
    assert list(topology.by_link()) == [Link("NV#", 12)]
    assert len(topology.pairs()) == 28
    assert topology.switched
    assert topology.numa["GPU0"] == "3"
    assert topology.cpus["GPU7"] == "80-95,208-223"
    assert topology.adapters["NIC9"] == "mlx5_9"


@pytest.mark.parametrize("path", [V100, A100])
def test_the_files_say_that_nobody_recorded_them(path):
    head = path.read_text().split("\tGPU0")[0]
    assert "Written for this course" in head
    assert "not recorded" in head
    assert "Source" in head


def test_the_best_and_the_worst_pair():
    v100 = read_topology(V100)
    assert v100.best_pair() == ("GPU0", "GPU3", Link("NV#", 2))
    assert v100.worst_pair() == ("GPU0", "GPU5", Link("SYS"))
    counts = {str(link): len(pairs) for link, pairs in v100.by_link().items()}
    assert counts == {"NV2": 8, "NV1": 8, "SYS": 12}
    a100 = read_topology(A100)
    assert a100.best_pair() == a100.worst_pair()


def test_one_gpu_has_no_pair():
    topology = parse_topology("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-7\tN/A\n")
    assert topology.numa == {"GPU0": None}
    assert topology.pairs() == []
    with pytest.raises(BadTopology, match="1 GPU: there is no pair"):
        topology.best_pair()


def test_what_the_tool_prints_is_read_with_its_underlines_and_tabs():
    topology = parse_topology(MODERN)
    assert topology.devices == ("GPU0", "GPU1", "NIC0")
    assert topology.link("GPU1", "GPU0") == Link("NV#", 18)
    assert topology.cpus == {"GPU0": "0-63", "GPU1": "64-127"}
    assert topology.numa == {"GPU0": "0", "GPU1": "1"}
    assert topology.adapters == {"NIC0": "mlx5_0"}
    assert topology.near("NIC0") == ["GPU0"]


def test_a_pasted_table_with_spaces_is_the_same_one():
    pasted = re.sub(r"[ \t]+", "   ", MODERN.replace("CPU Affinity", "CPU_A"))
    pasted = pasted.replace("CPU_A", "CPU Affinity").replace("NUMA   Aff", "NUMA Aff")
    pasted = pasted.replace("GPU   NUMA   ID", "GPU NUMA ID")
    assert parse_topology(pasted) == parse_topology(MODERN)
    assert parse_topology("$ nvidia-smi topo -m\n" + MODERN) == parse_topology(MODERN)
    assert parse_topology(MODERN.replace("\n", "\r\n")) == parse_topology(MODERN)
    assert parse_topology(MODERN.replace("\n\n", "\n")) == parse_topology(MODERN)


def test_affinities_that_the_tool_leaves_blank_are_not_told():
    """Under Windows' Linux there is nothing but the last column."""
    text = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t\t\t\tN/A\n"
    topology = parse_topology(text)
    assert (topology.cpus, topology.numa) == ({"GPU0": None}, {"GPU0": None})


def test_the_memory_of_a_gpu_may_be_a_numa_node_of_its_own():
    text = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-71\t0\t\t1\n"
    topology = parse_topology(text)
    assert (topology.numa, topology.own_numa) == ({"GPU0": "0"}, {"GPU0": "1"})
    assert parse_topology(MODERN).own_numa == {"GPU0": None, "GPU1": None}


def test_an_old_driver_s_word_for_sys_is_understood():
    assert parse_topology(SMALL.replace("SYS", "SOC")) == parse_topology(SMALL)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "No devices were found\n"])
def test_an_empty_table_is_refused(text):
    with pytest.raises(BadTopology, match=r"^machine\.txt is empty"):
        parse_topology(text, "machine.txt")


@pytest.mark.parametrize("text", [table(V100), table(A100), MODERN[: MODERN.index("\n\n") + 1]])
def test_a_table_cut_off_anywhere_is_refused_or_still_whole(text):
    """A cut may be seen or spare all links: it never gives other links."""
    whole = parse_topology(text).links
    spared = []
    for end in range(len(text)):
        with contextlib.suppress(BadTopology):
            spared.append(parse_topology(text[:end]).links)
    assert all(links == whole for links in spared)
    assert len(spared) < 10


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("GPU2    SYS     NODE     X      4-7             1\n", "", "has no row GPU2"),
        ("SYS     NODE     X      4-7             1", "SYS", "row GPU2 has 1 of 3 cells"),
        ("4-7             1", "4-7", "row GPU2 has no NUMA Affinity"),
        ("4-7             1", "4-             1", "CPU Affinity is '4-'"),
        ("NODE     X", "NODF     X", "row GPU2, column GPU1 is 'NODF', not one of NV#, PIX"),
        ("NODE     X", "NV0      X", "'NV0'"),
        ("NODE     X", "NV#      X", "'NV#'"),
        ("NODE     X", "PHB      X", "not symmetric: GPU1 to GPU2 is NODE, GPU2 to GPU1 is PHB"),
        ("NODE     X", "X        X", "column GPU1 is X; X is for a device itself"),
        ("GPU0     X", "GPU0    PIX", "row GPU0, column GPU0 is PIX"),
        ("\nGPU2 ", "\nGPU9 ", "row 'GPU9' that its header does not name"),
        ("GPU1    GPU2    CPU", "GPU1    GPU1    CPU", "names a device twice"),
        ("        GPU0    GPU1    GPU2    CPU Affinity    NUMA Affinity\n", "", "no header"),
    ],
)
def test_a_damaged_table_is_refused_by_name(old, new, message):
    assert SMALL.count(old) == 1
    with pytest.raises(BadTopology, match=re.escape(message)) as refused:
        parse_topology(SMALL.replace(old, new), "mine.txt")
    assert str(refused.value).startswith("mine.txt")


def test_links_are_ordered_and_explained():
    names = ["NV18", "NV2", "NV1", "PIX", "PXB", "PHB", "NODE", "SYS"]
    links = [Link.parse(name) for name in names]
    shuffled = links[5:] + links[:5]
    assert sorted(shuffled, key=lambda link: link.distance) == links
    assert [str(link) for link in links] == names
    assert Link.parse("NV4").meaning.startswith("4 NVLinks")
    assert len(set(MEANINGS.values())) == len(MEANINGS)


def test_the_level_of_nccl_that_each_path_needs():
    needed = {"NV2": "NVL", "PIX": "PIX", "PXB": "PXB", "PHB": "PHB", "NODE": "PHB", "SYS": "SYS"}
    assert {name: Link.parse(name).p2p_level for name in needed} == needed


def test_a_higher_level_lets_more_pairs_talk_directly():
    topology = read_topology(V100)
    assert dict(levels(topology)) == {
        "LOC": 0, "NVL": 16, "PIX": 16, "PXB": 16, "PHB": 16, "SYS": 28,
    }  # fmt: skip
    small = parse_topology(SMALL)
    assert [len(small.direct(level)) for level in P2P_LEVELS] == [0, 0, 1, 1, 2, 3]
    with pytest.raises(ValueError, match="NCCL_P2P_LEVEL=NODE: choose one of LOC, NVL"):
        small.direct("NODE")


def pretend(folder, monkeypatch, script: str) -> None:
    """Put an nvidia-smi of ours first on PATH."""
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_this_machine_is_asked(tmp_path, monkeypatch):
    (tmp_path / "table").write_text(MODERN)
    pretend(tmp_path, monkeypatch, f'test "$*" = "topo -m" && cat {tmp_path}/table')
    assert ask_nvidia_smi() == MODERN


def test_a_driver_that_fails_is_named(tmp_path, monkeypatch):
    pretend(tmp_path, monkeypatch, "echo Failed to initialize NVML; exit 9")
    with pytest.raises(BadTopology, match="Failed to initialize NVML; run `hvdcourse doctor`"):
        ask_nvidia_smi()


def test_without_the_program_there_is_no_table(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ask_nvidia_smi() is None


def drawn_edges(axes) -> dict[float, int]:
    """Return how many straight lines there are of each width."""
    widths = [line.get_linewidth() for line in axes.lines]
    return {width: widths.count(width) for width in widths}


def test_the_picture_has_an_edge_for_each_pair_as_wide_as_its_nvlinks():
    figure = plot_topology({"V100": read_topology(V100), "A100": read_topology(A100)})
    v100, a100 = (drawn_edges(axes) for axes in figure.axes)
    plt.close(figure)
    narrow, one, two = sorted(v100)[0], 1.8, 3.6
    assert (v100[one], v100[two], v100[narrow]) == (8, 8, 12)
    assert a100[max(a100)] == 8  # one bundle from each GPU to the switches


def test_gpus_have_places_of_their_own_beside_those_of_their_numa_node():
    at = places(read_topology(V100))
    assert len({(round(x, 6), round(y, 6)) for x, y in at.values()}) == 8
    assert {gpu for gpu, (x, _) in at.items() if x < 0} == {"GPU0", "GPU1", "GPU2", "GPU3"}
    mixed = parse_topology(SMALL.replace("0-3             0", "4-7             1", 1))
    assert [gpu for gpu, (x, _) in places(mixed).items() if x < 0] == ["GPU0", "GPU2"]


@pytest.mark.parametrize("draw", [plot_topology, plot_matrix])
@pytest.mark.parametrize("text", [SMALL, MODERN, "\tGPU0\nGPU0\t X \n"])
def test_any_machine_can_be_drawn(draw, text):
    figure = draw({"machine": parse_topology(text)})
    figure.canvas.draw()
    plt.close(figure)
