"""Which ranks get a GPU, where there are some."""

import os

import pytest

from hvdcourse.launch.run import run, run_quickly
from hvdcourse.paths import SOLUTIONS

pytestmark = [
    pytest.mark.ranks,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.measured,
]


def test_ranks_that_outnumber_the_gpus_see_none_and_share_the_cores(script, monkeypatch, capfd):
    monkeypatch.setattr("hvdcourse.machine.gpus.visible_gpus", lambda: 1)
    path = script("""
    import os
    print(os.environ.get("CUDA_VISIBLE_DEVICES"), len(os.sched_getaffinity(0)))
    """)
    cores = len(os.sched_getaffinity(0))
    assert run(path, 1, cores=1).output == [[f"None {cores}"]]
    assert run(path, 2, cores=1).output == [["-1 1"]] * 2
    assert "\n$ CUDA_VISIBLE_DEVICES=-1 taskset --cpu-list" in capfd.readouterr().out
    chosen = run(path, 2, environment={"CUDA_VISIBLE_DEVICES": "0"}, quiet=True).output
    assert [line[0].split()[0] for line in chosen] == ["0", "0"]


@pytest.mark.parametrize(
    ("name", "backend", "options"),
    [
        ("places", "gloo", {}),
        ("allreduce_times", "gloo", {"bytes": 4, "repeats": 1}),
        ("stragglers", "gloo", {"steps": 1}),
        ("compare_with_horovod", "mpi", {"repeats": 1}),
    ],
)
def test_a_rank_of_an_experiment_takes_the_gpu_of_its_local_rank(name, backend, options, script):
    # It finds what it imports from its own folder; PYTHONPATH would keep ranks from being forked.
    path = script(f"""
    import runpy, sys
    sys.path.insert(0, {str(SOLUTIONS)!r})
    from hvdcourse import report
    from hvdcourse.rank.pretended_gpus import PretendedGPUs

    gpus = PretendedGPUs()
    gpus.pretend()
    runpy.run_path({str(SOLUTIONS / f"{name}.py")!r}, run_name="__main__")
    report("gpus", gpus.visible())
    """)
    result = run_quickly(path, 2, backend=backend, **options)
    found = [rank.evidence[-1]["value"] for rank in result.ranks]
    assert found == [[0], [1]]
