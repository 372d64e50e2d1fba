"""Links are read from names and rates, and wrong ones are named."""

import math

import pytest

from hvdcourse.errors import BadInput
from hvdcourse.simulate.links import LINKS, Cluster, Link, flat, read_link


@pytest.mark.parametrize(
    ("text", "bandwidth"),
    [("25gbit", 3.125e9), ("100mbit", 12.5e6), ("400gbit", 50e9), ("pcie", 12e9)],
)
def test_a_link_is_a_name_or_a_rate(text, bandwidth):
    assert read_link(text).bandwidth == bandwidth


@pytest.mark.parametrize("text", ["", "25", "25 gbit", "nvlink9", None, 25])
def test_another_text_is_no_link(text):
    with pytest.raises(BadInput, match="a link must be one of pcie, nvlink, nvlink4, or a rate"):
        read_link(text)


@pytest.mark.parametrize(
    ("latency", "bandwidth"), [(-1, 1), (math.nan, 1), (math.inf, 1), (0, 0), (0, math.nan)]
)
def test_a_link_has_a_latency_and_a_bandwidth(latency, bandwidth):
    with pytest.raises(BadInput, match="a link's"):
        Link(latency, bandwidth)


def test_a_message_takes_latency_and_bytes():
    assert Link(0.5, 100).seconds(200) == 2.5


@pytest.mark.parametrize("hosts", [0, -1, 1.5, None])
def test_a_cluster_has_whole_hosts(hosts):
    with pytest.raises(BadInput, match="hosts must be a whole number from 1"):
        Cluster(hosts, 4, LINKS["pcie"], LINKS["pcie"])


def test_ranks_are_counted_over_all_hosts():
    assert Cluster(128, 4, LINKS["pcie"], LINKS["pcie"]).ranks == 512
    assert flat(8, LINKS["pcie"]).ranks == 8
