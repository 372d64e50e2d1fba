"""Whose hosts ``cluster.hosts`` removes, shown on a record alone: this needs no root."""

from contextlib import contextmanager

import pytest

from hvdcourse import cluster, cluster_record
from hvdcourse.cluster_record import ClusterError, read_record
from hvdcourse.launch import BadInput


@pytest.fixture
def events(tmp_path, monkeypatch):
    """Have hosts only written down, and return what was done, in order."""
    done = []

    def make(record):
        done.append("made")
        record.complete = True
        record.write()

    @contextmanager
    def guarded(owner):
        done.append("guarded")
        yield

    for module in (cluster, cluster_record):
        monkeypatch.setattr(module, "FOLDER", tmp_path / "hosts")
    monkeypatch.setattr(cluster_record, "LOCK", tmp_path / "lock")
    monkeypatch.setattr(cluster, "as_root", lambda: True)
    monkeypatch.setattr(cluster, "refuse_if_missing", lambda: None)
    monkeypatch.setattr(cluster, "whole", lambda record: record.complete)
    monkeypatch.setattr(cluster, "make", make)
    monkeypatch.setattr(cluster, "guarded", guarded)
    return done


def test_a_block_removes_its_hosts_and_is_guarded_before_they_are_made(events):
    with cluster.hosts(2) as hosts:
        assert [host.name for host in hosts] == ["node1", "node2"]
        assert read_record() is not None
    assert read_record() is None
    assert events == ["guarded", "made"]


def test_a_block_leaves_equal_hosts_that_were_up_before(events):
    cluster.up(2)
    with cluster.hosts(2) as hosts:
        assert len(hosts) == 2
    assert read_record() is not None
    assert events == ["made", "guarded"]
    assert cluster.down()
    assert read_record() is None


def test_an_inner_block_leaves_the_hosts_to_the_outer_one(events):
    with cluster.hosts(2):
        with cluster.hosts(2):
            pass
        assert read_record() is not None
    assert read_record() is None


def test_what_a_guard_is_told_to_remove_is_its_owners_only(events):
    cluster.up(2)
    assert not cluster.down("somebody else")
    assert read_record() is not None


@pytest.mark.parametrize(
    ("count", "error", "said"),
    [("two", BadInput, "got 'two'"), (3, ClusterError, "other hosts are up already")],
)
def test_a_block_that_gets_no_hosts_says_why_and_removes_none(events, count, error, said):
    cluster.up(2)
    with pytest.raises(error, match=said), cluster.hosts(count):
        pass
    assert read_record() is not None


def test_one_host_only_can_be_asked_for(monkeypatch):
    monkeypatch.setenv("HVDCOURSE_CLUSTER", "0")
    assert cluster.missing() == "HVDCOURSE_CLUSTER=0 asks for one host only"
