"""How many GPUs ranks may use, on machines with any number of them."""

import pytest

from hvdcourse import gpus


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Make a machine whose driver shows GPUs of these numbers."""

    def with_gpus(*numbers):
        for name in (*(f"nvidia{number}" for number in numbers), "nvidiactl", "nvidia-uvm"):
            (tmp_path / name).touch()
        monkeypatch.setattr(gpus, "DEVICES", tmp_path)
        monkeypatch.setattr(gpus, "has_libraries", lambda: True)
        monkeypatch.delenv(gpus.VARIABLE, raising=False)

    return with_gpus


@pytest.mark.parametrize(
    ("numbers", "chosen", "count"),
    [
        ((), None, 0),
        ((0, 1, 2, 3), None, 4),
        ((3,), None, 1),  # as in a container that was given the fourth one
        ((0, 1, 2, 3), "0,1", 2),
        ((0, 1), "", 0),
        ((0, 1), "-1", 0),
        ((0, 1, 2), "1,-1,2", 1),
        ((), "0,1", 0),
    ],
)
def test_gpus_are_counted_as_a_process_may_use_them(numbers, chosen, count, machine, monkeypatch):
    machine(*numbers)
    if chosen is not None:
        monkeypatch.setenv(gpus.VARIABLE, chosen)
    assert gpus.visible_gpus() == count


@pytest.mark.parametrize(
    ("numbers", "np", "hidden"), [((), 2, False), ((0,), 2, True), ((0, 1), 2, False)]
)
def test_ranks_without_a_gpu_each_get_none(numbers, np, hidden, machine):
    machine(*numbers)
    assert gpus.enough_gpus(np) == ({gpus.VARIABLE: "-1"} if hidden else {})


def test_gpus_that_tensorflow_has_no_libraries_for_are_not_counted(machine, monkeypatch):
    machine(0, 1)
    monkeypatch.setattr(gpus, "has_libraries", lambda: False)
    assert gpus.visible_gpus() == 0
    assert gpus.enough_gpus(3) == {}


@pytest.fixture
def without_libraries(monkeypatch):
    monkeypatch.setattr(gpus, "LIBRARY", "libnone.so.8")
    monkeypatch.setattr(gpus, "find_spec", lambda name: None)
    gpus.has_libraries.cache_clear()
    yield
    gpus.has_libraries.cache_clear()


def test_libraries_are_found_in_wheels_or_where_the_loader_looks(without_libraries, monkeypatch):
    assert not gpus.has_libraries()
    gpus.has_libraries.cache_clear()
    monkeypatch.setattr(gpus, "find_spec", lambda name: name == "nvidia.cudnn")
    assert gpus.has_libraries()
    gpus.has_libraries.cache_clear()
    monkeypatch.setattr(gpus, "find_spec", lambda name: None)
    monkeypatch.setattr(gpus, "LIBRARY", "libc.so.6")
    assert gpus.has_libraries()
