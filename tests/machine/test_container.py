"""What is used of a machine by whoever is allowed a part of it only, as in a container."""

import os

import psutil
import pytest

from hvdcourse.commands import doctor
from hvdcourse.machine import container
from hvdcourse.machine.cores import split_cores, usable_cores

THREADS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


@pytest.fixture
def limits(tmp_path, monkeypatch):
    """Give this process a control group with such files, on a machine of 8 cores."""

    def written(**files: str) -> None:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    monkeypatch.setattr(container, "GROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    for name in THREADS:
        monkeypatch.setenv(name, "untouched")
    return written


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "6400000 100000\n"}, 8),
        ({"cpu__cpu.cfs_quota_us": "300000\n", "cpu__cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu__cpu.cfs_quota_us": "-1\n", "cpu__cpu.cfs_period_us": "100000\n"}, 8),
        ({"cpu.max": "nonsense\n"}, 8),
    ],
)
def test_cores_are_counted_by_the_time_that_is_allowed(files, cores, limits):
    limits(**files)
    assert usable_cores() == cores


@pytest.mark.parametrize(
    ("local_rank", "local_size", "threads"), [(0, 1, "4"), (1, 2, "2"), (2, 8, "1")]
)
def test_ranks_in_a_container_start_few_threads_and_take_no_core_for_themselves(
    local_rank, local_size, threads, limits, monkeypatch
):
    limits(**{"cpu.max": "400000 100000\n"})
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: pytest.fail("pinned"))
    assert split_cores(local_rank, local_size) == list(range(8))
    assert [os.environ[name] for name in THREADS] == [threads] * 3


def test_a_process_alone_without_a_limit_is_left_as_it_is(limits):
    assert split_cores(0, 1) == list(range(8))
    assert [os.environ[name] for name in THREADS] == ["untouched"] * 3


@pytest.mark.parametrize("name", ["memory.max", "memory__memory.limit_in_bytes"])
def test_the_doctor_tells_of_the_limits_and_of_too_little_memory(name, limits):
    limits(**{"cpu.max": "200000 100000\n", name: str(2 * 2**30)})
    found = {one.name: one for one in doctor.machine_findings()}
    assert found["cores"].found == "the time of 2, on 8, is allowed"
    assert found["memory"].found.startswith("2.0 GiB, of which ")
    assert not found["memory"].well


def test_memory_without_a_limit_is_the_machines(limits):
    limits(**{"memory.max": "max\n"})
    total = psutil.virtual_memory().total / 2**30
    found = {one.name: one for one in doctor.machine_findings()}
    assert found["memory"].found.startswith(f"{total:.1f} GiB")
