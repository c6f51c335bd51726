"""Cores are counted as the system describes them: hyper-threads of one core once, and of several kinds only the fast ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import ir_runtime as ov
from ir_runtime.api import streams
from ir_runtime.backends.core.cores import cores, processors


def system(path: Path, siblings: Mapping[int, str], capacities: Mapping[int, object] = {}, fast: str = "") -> Path:  # fmt: skip
    """Describe processors as Linux does under /sys/devices."""
    for number, listed in siblings.items():
        folder = path / "system" / "cpu" / f"cpu{number}"
        (folder / "topology").mkdir(parents=True)
        (folder / "topology" / "thread_siblings_list").write_text(f"{listed}\n")
        if number in capacities:
            (folder / "cpu_capacity").write_text(f"{capacities[number]}\n")
    if fast:
        (path / "cpu_core").mkdir()
        (path / "cpu_core" / "cpus").write_text(f"{fast}\n")
        (path / "cpu_atom").mkdir()
    return path


def test_hyper_threads_of_a_core_count_once(tmp_path: Path) -> None:
    server = system(tmp_path, {n: f"{n % 4},{n % 4 + 4}" for n in range(8)})
    usable = frozenset(range(8))
    assert cores(usable, system=server) == 4
    assert cores(usable, hyper_threads=True, system=server) == 8
    assert cores(frozenset({0, 4, 5}), system=server) == 2


def test_the_fast_cores_of_a_hybrid_processor_count(tmp_path: Path) -> None:
    """Two fast cores of two hyper-threads each, and four slow ones."""
    pairs = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}
    laptop = system(tmp_path, pairs | {n: str(n) for n in range(4, 8)}, fast="0-2,3")
    usable = frozenset(range(8))
    assert cores(usable, system=laptop) == 2
    assert cores(usable, hyper_threads=True, system=laptop) == 4
    assert cores(usable, slow=True, system=laptop) == 6
    assert cores(usable, slow=True, hyper_threads=True, system=laptop) == 8
    assert cores(frozenset({4, 5, 6}), system=laptop) == 3, "no fast one may be used"


def test_cores_of_small_capacity_do_not_count(tmp_path: Path) -> None:
    """Four slow cores, three fast ones, and one that is the fastest."""
    capacity = {0: 290, 1: 290, 2: 290, 3: 290, 4: 850, 5: 850, 6: 850, 7: 1024}
    phone = system(tmp_path, {n: str(n) for n in range(8)}, capacity)
    assert cores(frozenset(range(8)), system=phone) == 4
    assert cores(frozenset(range(8)), slow=True, system=phone) == 8
    assert cores(frozenset(range(4)), system=phone) == 4


@pytest.mark.parametrize("capacity", ["", "unknown", "-1"])
def test_every_processor_counts_where_the_system_says_nothing(tmp_path: Path, capacity: str) -> None:
    assert cores(frozenset(range(3)), system=tmp_path / "nothing") == 3
    odd = system(tmp_path, {0: "", 1: ""}, {0: capacity, 1: capacity}, fast="none")
    assert cores(frozenset({0, 1}), system=odd) == 2
    assert cores(frozenset(), system=odd) == 1


def test_the_processors_of_this_process() -> None:
    assert processors()
    assert 1 <= cores() <= len(processors())


def test_models_use_the_cores_unless_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(*, hyper_threads: bool, slow: bool) -> int:
        return 4 * (1 + hyper_threads) + 2 * slow

    monkeypatch.setattr(streams, "cores", counted)
    kind = ov.properties.hint.SchedulingCoreType
    for config, threads in (
        ({}, 4),
        ({"ENABLE_HYPER_THREADING": True}, 8),
        ({"SCHEDULING_CORE_TYPE": kind.ANY_CORE}, 6),
        ({"SCHEDULING_CORE_TYPE": kind.PCORE_ONLY}, 4),
        ({"ENABLE_HYPER_THREADING": True, "INFERENCE_NUM_THREADS": 3}, 3),
    ):
        assert streams.Streams.of(config).threads == threads
