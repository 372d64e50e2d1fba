"""What of ``hvdcourse cluster`` needs no root: its command lines."""

import sys

import pytest

from hvdcourse.cluster import cluster
from hvdcourse.errors import BadInput

HOSTS = [cluster.Host("node1", "10.83.0.1", 2), cluster.Host("node2", "10.83.0.2", 1)]


def test_horovodrun_over_gloo_as_typed():
    command = cluster.horovodrun_command(HOSTS, script=["train.py", "--epochs", "3"])
    assert " ".join(command) == (
        "horovodrun -np 3 -H node1:2,node2:1 --network-interfaces hvd0 --gloo "
        "python train.py --epochs 3"
    )


def test_hosts_may_be_a_table_and_the_interface_another():
    command = cluster.horovodrun_command({"a": 4, "b": 4}, 6, script=["x.py"], interface="ib0")
    assert " ".join(command) == (
        "horovodrun -np 6 -H a:4,b:4 --network-interfaces ib0 --gloo python x.py"
    )


def test_the_hosts_of_a_real_cluster_are_given_as_a_launcher_takes_them():
    hosts = cluster.hosts_from("a:4, b:2")
    assert hosts == {"a": 4, "b": 2}
    over_gloo, over_mpi = (
        cluster.horovodrun_command(hosts, None, backend, ["x.py"], interface=None)
        for backend in ("gloo", "mpi")
    )
    assert over_gloo[:5] == over_mpi[:5] == ["horovodrun", "-np", "6", "-H", "a:4,b:2"]
    for command in (over_gloo, over_mpi, cluster.plain_mpirun_command(hosts, interface=None)):
        said = " ".join(command)
        assert not any(word in said for word in ("interface", "if_include", "None", "hvd0"))


@pytest.mark.parametrize("text", ["", "a", "a:", ":4", "a:0", "a:-1", "a:4,,b:4", "a:4,a:4", "a:²"])
def test_what_names_no_hosts_is_refused(text):
    with pytest.raises(BadInput, match="hosts are written as a:4,b:4"):
        cluster.hosts_from(text)


def test_over_mpi_the_other_hosts_are_told_where_open_mpi_is():
    command = cluster.horovodrun_command(HOSTS, backend="mpi", script=["train.py"])
    (arguments,) = [word for word in command if word.startswith("--mpi-args=")]
    assert f"--prefix {sys.prefix}" in arguments
    plain = cluster.plain_mpirun_command(HOSTS, script=["train.py"])
    assert plain[:3] == ["mpirun", "--prefix", sys.prefix]
    exported = [plain[at + 1] for at, word in enumerate(plain) if word == "-x"]
    assert {"PATH", "OPAL_PREFIX"} <= set(exported)
    assert plain[-2:] == ["python", "train.py"]


@pytest.mark.parametrize(
    ("hosts", "np", "backend", "said"),
    [
        (HOSTS, 4, "gloo", "np must be 1 to 3, the slots of node1:2,node2:1; got 4"),
        (HOSTS, 0, "gloo", "np must be 1 to 3"),
        (HOSTS, 2, "nccl", "backend must be one of gloo, mpi; got 'nccl'"),
        ([], None, "gloo", "hosts must name at least one host with a slot"),
    ],
)
def test_a_command_for_too_many_ranks_or_none_is_refused(hosts, np, backend, said):
    with pytest.raises(BadInput, match=said):
        cluster.horovodrun_command(hosts, np, backend)
