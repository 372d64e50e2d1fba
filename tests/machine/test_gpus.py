"""How many GPUs ranks may use, on machines with any number of them."""

import pytest

from hvdcourse.machine import gpus


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
    assert gpus.gpus_for(np) == (0 if hidden or not numbers else np)


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


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Make a program of this name that runs a shell script, first on PATH."""

    def with_script(script):
        program = tmp_path / "nvidia-smi"
        program.write_text(script)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    return with_script


def test_what_the_driver_says_is_returned(nvidia_smi):
    nvidia_smi('#!/bin/sh\necho "asked: $*"\n')
    assert gpus.ask_nvidia_smi("topo", "-m") == "asked: topo -m\n"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "#!/bin/sh\necho Failed to initialize NVML; exit 9\n",
            "failed: Failed to initialize NVML",
        ),
        ("#!/bin/sh\necho list; echo no device >&2; exit 1\n", "failed: no device"),
        ("#!/bin/sh\nexit 1\n", "failed: it printed nothing"),
        ("#!/bin/sh\nexec sleep 60\n", "did not end within 0.2 s"),
        ("#!/no/such/shell\n", "cannot be started: No such file or directory"),
    ],
)
def test_a_driver_that_fails_is_named(script, message, nvidia_smi):
    nvidia_smi(script)
    with pytest.raises(gpus.NvidiaSmiError, match=f"^nvidia-smi -L {message}; have the NVIDIA"):
        gpus.ask_nvidia_smi("-L", timeout=0.2 if "sleep" in script else 30)


def test_without_the_program_there_is_no_answer(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus.ask_nvidia_smi("-L") is None
