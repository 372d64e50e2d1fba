"""The table of nvidia-smi topo -m: read as it is printed, and refused where it is not whole."""

import contextlib
from itertools import combinations

import pytest

from hvdcourse.machine.topology import (
    BadTopology,
    Link,
    levels,
    parse_topology,
    read_topology,
)
from hvdcourse.paths import PROJECT

V100 = PROJECT / "notebooks/recorded/topology_dgx1_v100.txt"
A100 = PROJECT / "notebooks/recorded/topology_a100_nvswitch.txt"
# As the tool prints it today, to a pipe, too: an underlined header, and a tab too many before N/A.
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


def whole_table(path) -> str:
    """Return the table of a file without its comments and its legend."""
    text = path.read_text()
    return text[text.index("\tGPU0") : text.index("\n\n") + 1]


def test_the_cube_mesh_is_two_full_quads_and_four_links_between_them():
    topology = read_topology(V100)
    assert len(topology.adapters) == 4
    assert not topology.switched
    assert [topology.nvlinks(gpu) for gpu in topology.gpus] == [6] * 8
    left, right = topology.gpus[:4], topology.gpus[4:]
    for quad in (left, right):
        assert all(topology.links[pair].nvlinks for pair in combinations(quad, 2))
    across = [(a, b) for a in left for b in right if topology.links[a, b].nvlinks]
    assert across == list(zip(left, right, strict=True))


def test_every_a100_reaches_every_other_by_its_twelve_nvlinks():
    topology = read_topology(A100)
    assert {link: len(pairs) for link, pairs in topology.by_link().items()} == {Link("NV#", 12): 28}
    assert topology.switched
    assert topology.places["GPU0"] == "NUMA node 3"


@pytest.mark.parametrize("path", [V100, A100])
def test_the_files_say_that_nobody_recorded_them(path):
    head = path.read_text().split("\tGPU0")[0]
    assert "Written for this course" in head
    assert "not recorded" in head
    assert "Source" in head


def test_pairs_are_grouped_by_their_link_the_best_first():
    groups = read_topology(V100).by_link()
    counts = [(str(link), len(pairs)) for link, pairs in groups.items()]
    assert counts == [("NV2", 8), ("NV1", 8), ("SYS", 12)]
    assert groups[Link("NV#", 2)][0] == ("GPU0", "GPU3")


def test_what_the_tool_prints_is_read_with_its_underlines_and_tabs():
    topology = parse_topology(MODERN)
    assert topology.devices == ("GPU0", "GPU1", "NIC0")
    assert topology.links["GPU1", "GPU0"] == Link("NV#", 18)
    assert topology.places == {"GPU0": "NUMA node 0", "GPU1": "NUMA node 1", "NIC0": ""}


@pytest.mark.parametrize(
    "text",
    [
        MODERN.replace("\t", "   "),
        "$ nvidia-smi topo -m\n" + MODERN,
        MODERN.replace("\n", "\r\n"),
        MODERN.replace("\n\n", "\n"),
    ],
)
def test_a_pasted_table_is_the_same_one(text):
    assert parse_topology(text) == parse_topology(MODERN)


@pytest.mark.parametrize(
    ("affinities", "place"),
    [
        ("0-71\t0\t\t1", "NUMA node 0"),
        ("0-71\tN/A\t\tN/A", "near CPUs 0-71"),
        ("\t\t\tN/A", ""),  # under Windows' Linux
    ],
)
def test_the_place_of_a_gpu_is_what_the_table_says_of_it(affinities, place):
    header = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    assert parse_topology(f"{header}GPU0\t X \t{affinities}\n").places == {"GPU0": place}


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "No devices were found\n"])
def test_an_empty_table_is_refused(text):
    with pytest.raises(BadTopology, match=r"^machine\.txt is empty"):
        parse_topology(text, "machine.txt")


@pytest.mark.parametrize("path", [V100, A100])
def test_a_table_cut_off_anywhere_is_refused_or_has_all_its_links(path):
    text = whole_table(path)
    whole = parse_topology(text).links
    spared = []
    for end in range(len(text)):
        with contextlib.suppress(BadTopology):
            spared.append(parse_topology(text[:end]).links)
    assert all(links == whole for links in spared)
    assert len(spared) < 10


ROWS = "does not have a row for each of its columns"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("GPU2    SYS     NODE     X      4-7             1\n", "", ROWS),
        ("\nGPU2 ", "\nGPU9 ", ROWS),
        ("GPU1    GPU2    CPU", "GPU1    GPU1    CPU", ROWS),
        ("        GPU0    GPU1    GPU2    CPU Affinity    NUMA Affinity\n", "", ROWS),
        *[
            (old, new, "is damaged: row GPU1, column GPU2 and row GPU2, column GPU1 do not have")
            for old, new in (
                ("SYS     NODE     X      4-7             1", "SYS"),
                ("NODE     X", "NODF     X"),
                ("NODE     X", "NV0      X"),
                ("NODE     X", "NV#      X"),
                ("NODE     X", "PHB      X"),
                ("NODE     X", "X        X"),
            )
        ],
    ],
)
def test_a_damaged_table_is_refused_by_name(old, new, message):
    assert SMALL.count(old) == 1
    with pytest.raises(BadTopology, match=f"^mine.txt {message}"):
        parse_topology(SMALL.replace(old, new), "mine.txt")


def test_a_higher_level_lets_more_pairs_talk_directly():
    assert levels(read_topology(V100)) == {
        "LOC": 0, "NVL": 16, "PIX": 16, "PXB": 16, "PHB": 16, "SYS": 28,
    }  # fmt: skip
    assert list(levels(parse_topology(SMALL)).values()) == [0, 0, 1, 1, 2, 3]
