"""The drawings of a machine's GPUs: their links as lines, and the table in colors."""

import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection

from hvdcourse.machine.topology import parse_topology, read_topology
from hvdcourse.paths import PROJECT
from hvdcourse.plots.topology import plot_matrix, plot_topology, positions

RECORDED = PROJECT / "notebooks/recorded"
V100 = read_topology(RECORDED / "topology_dgx1_v100.txt")
A100 = read_topology(RECORDED / "topology_a100_nvswitch.txt")
ONE_GPU = "\tGPU0\nGPU0\t X \n"
TWO_NODES = """
        GPU0    GPU1    GPU2    NIC0    CPU Affinity    NUMA Affinity
GPU0     X      PIX     SYS     PHB     4-7             1
GPU1    PIX      X      NODE    PHB     0-3             0
GPU2    SYS     NODE     X      PHB     4-7             1
NIC0    PHB     PHB     PHB      X
"""


@pytest.fixture
def drawn():
    """Return a function that draws machines and returns their axes."""

    def draw(plot, *topologies):
        figure = plot({str(number): topology for number, topology in enumerate(topologies)})
        figure.canvas.draw()
        return figure.axes

    yield draw
    plt.close("all")


def lines_by_name(axes) -> dict[str, tuple[int, float]]:
    """Return how many lines each entry of the legend stands for, and their width."""
    groups = [group for group in axes.collections if isinstance(group, LineCollection)]
    return {
        group.get_label(): (len(group.get_segments()), group.get_linewidth()[0]) for group in groups
    }


def test_the_picture_has_a_line_for_each_pair_as_wide_as_its_nvlinks(drawn):
    v100, a100 = (lines_by_name(axes) for axes in drawn(plot_topology, V100, A100))
    assert (v100["NV2"], v100["NV1"]) == ((8, 3.6), (8, 1.8))
    assert v100["SYS"][0] == 12
    assert a100["NV12 to the switches"][0] == 8


def test_the_legend_names_each_link_and_numa_node_once(drawn):
    v100, a100 = (
        [text.get_text() for text in axes.get_legend().texts]
        for axes in drawn(plot_topology, V100, A100)
    )
    assert v100[:4] == ["NV2", "NV1", "SYS", "PIX to an adapter"]
    assert v100[4:] == ["near CPUs 0-19,40-59", "near CPUs 20-39,60-79"]
    assert a100[2:] == [f"NUMA node {node}" for node in (3, 1, 7, 5)]


def test_adapters_stand_in_the_picture_with_the_gpus_that_they_are_near_to(drawn):
    (axes,) = drawn(plot_topology, A100)
    assert {"NIC0\nNIC1", "NIC4, NIC5: SYS to every GPU"} <= {t.get_text() for t in axes.texts}
    assert lines_by_name(axes)["PXB to an adapter"][0] == 2


def test_gpus_have_places_of_their_own_beside_those_of_their_numa_node():
    points = positions(V100)
    assert len({(round(x, 6), round(y, 6)) for x, y in points.values()}) == 8
    assert {gpu for gpu, (x, _) in points.items() if x < 0} == {"GPU0", "GPU1", "GPU2", "GPU3"}
    mixed = positions(parse_topology(TWO_NODES))
    assert [gpu for gpu, (x, _) in mixed.items() if x < 0] == ["GPU0", "GPU2"]


def test_the_matrix_shows_every_cell_of_the_gpus_rows(drawn):
    (axes,) = drawn(plot_matrix, V100)
    cells = {
        (V100.gpus[int(text.get_position()[1])], V100.devices[int(text.get_position()[0])]):
        text.get_text() for text in axes.texts
    }  # fmt: skip
    of_gpus = {pair: link for pair, link in V100.links.items() if pair[0] in V100.gpus}
    assert cells == {pair: str(link) for pair, link in of_gpus.items()}


@pytest.mark.parametrize("plot", [plot_topology, plot_matrix])
@pytest.mark.parametrize("text", [ONE_GPU, TWO_NODES])
def test_any_machine_can_be_drawn(plot, text, drawn):
    (axes,) = drawn(plot, parse_topology(text))
    assert axes.get_title() == "0"
