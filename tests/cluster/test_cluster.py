"""What of making hosts needs no root: the reading of what is asked for."""

import pytest

from hvdcourse.cluster import cluster
from hvdcourse.cluster.network import burst_bytes
from hvdcourse.cluster.plan import checked_slots
from hvdcourse.errors import BadInput, bits_per_second


@pytest.mark.parametrize("slots", [[2, 1, 1], (2, 1, 1), "2,1,1"])
def test_slots_may_differ(slots):
    assert checked_slots(3, slots) == [2, 1, 1]


@pytest.mark.parametrize("slots", [2, "2", [2]])
def test_one_number_of_slots_is_for_all_hosts(slots):
    assert checked_slots("3", slots) == [2, 2, 2]


@pytest.mark.parametrize(
    ("count", "slots"), [(0, 1), (17, 1), (2, 0), (2, "1,1,1"), (2, ""), (2, None), ("²", 1)]
)
def test_wrong_numbers_are_refused(count, slots):
    with pytest.raises(BadInput):
        checked_slots(count, slots)


def test_a_burst_is_large_enough_for_the_rate():
    assert burst_bytes("100mbit") == 128 * 1024
    assert burst_bytes("10gbit") == 1_250_000


@pytest.mark.parametrize(
    "bandwidth", ["", "1", "gbit", "-1gbit", "0mbit", "1gbit; true", "900kbit"]
)
def test_a_bandwidth_that_tc_would_not_take_is_refused(bandwidth):
    with pytest.raises(BadInput, match="bandwidth must be a rate"):
        bits_per_second(bandwidth)


def test_one_host_only_can_be_asked_for(monkeypatch):
    monkeypatch.setenv("HVDCOURSE_CLUSTER", "0")
    assert cluster.missing() == "HVDCOURSE_CLUSTER=0 asks for one host only"
