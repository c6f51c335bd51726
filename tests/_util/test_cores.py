"""Core counts from the system's description: hyper-threads of one core count once, and only the fast cores of hybrid processors."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from harness.sources import PACKAGE, trees

import ir_runtime as ov
from ir_runtime._util import cores as counting
from ir_runtime._util.cores import cores, parallelism, processors, quota
from ir_runtime.openvino import devices


def system(path: Path, siblings: Mapping[int, str], capacities: Mapping[int, object] = {}, fast: str = "") -> Path:  # fmt: skip
    """Describe processors as Linux does in /sys/devices."""
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
    """Two fast cores with two hyper-threads each, and four slow ones."""
    pairs = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}
    laptop = system(tmp_path, pairs | {n: str(n) for n in range(4, 8)}, fast="0-2,3")
    usable = frozenset(range(8))
    assert cores(usable, system=laptop) == 2
    assert cores(usable, hyper_threads=True, system=laptop) == 4
    assert cores(usable, slow=True, system=laptop) == 6
    assert cores(usable, slow=True, hyper_threads=True, system=laptop) == 8
    assert cores(frozenset({4, 5, 6}), system=laptop) == 3, "no fast one may be used"


def test_cores_of_small_capacity_do_not_count(tmp_path: Path) -> None:
    """Four slow cores, three fast ones, and a fastest one."""
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
    assert 1 <= cores() <= parallelism() <= len(processors())


@pytest.fixture
def process(tmp_path: Path) -> Path:
    """A folder like /proc/self of a process in v1 and v2 control groups, mounted at a path with a space."""
    process, groups = tmp_path / "proc", tmp_path / "cgroup folder"
    for folder in (process, groups / "unified/pods/one", groups / "cpu,cpuacct/pods/one"):
        folder.mkdir(parents=True)
    mount = str(groups).replace(" ", "\\040")
    (process / "mountinfo").write_text(
        f"""\
22 1 0:5 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
31 23 0:28 / {mount} rw,relatime - tmpfs tmpfs rw,mode=755
41 31 0:38 / {mount}/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
32 31 0:29 / {mount}/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
33 31 0:31 / {mount}/cpuset rw,relatime - cgroup cgroup rw,cpuset
"""
    )
    (process / "cgroup").write_text(
        "9:name=systemd:/\n3:cpuset:/other\n2:cpu,cpuacct:/pods/one\n0::/pods/one\n"
    )
    return process


UNIFIED, FIRST = "cgroup folder/unified", "cgroup folder/cpu,cpuacct"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({f"{UNIFIED}/pods/one": "max 100000"}, None),
        ({f"{UNIFIED}/pods/one": "50000 100000"}, 0.5),
        ({f"{UNIFIED}/pods/one": "max 100000", f"{UNIFIED}/pods": "150000 100000"}, 1.5),
        ({f"{UNIFIED}/pods/one": "400000 100000", UNIFIED: "300000 100000"}, 3),
        ({f"{FIRST}/pods/one": "-1", f"{FIRST}/pods": "250000"}, 2.5),
        ({f"{FIRST}/pods/one": "-1", FIRST: "-1"}, None),
        ({f"{FIRST}/pods/one": "200000", f"{UNIFIED}/pods": "100000 100000"}, 1),
        ({f"{UNIFIED}/pods/one": "half 100000"}, None),
        ({f"{UNIFIED}/pods/one": "100000 0"}, None),
        ({f"{UNIFIED}/other": "50000 100000", "cgroup folder/cpuset/other": "50000"}, None),
    ],
)
def test_quotas_of_a_group_and_those_above_it(
    process: Path, files: Mapping[str, str], expected: float | None
) -> None:
    for folder, text in files.items():
        place = process.parent / folder
        place.mkdir(parents=True, exist_ok=True)
        if "unified" in folder:
            (place / "cpu.max").write_text(f"{text}\n")
        else:
            (place / "cpu.cfs_quota_us").write_text(f"{text}\n")
            (place / "cpu.cfs_period_us").write_text("100000\n")
    assert quota(process) == expected


@pytest.mark.parametrize(
    ("root", "group"),
    [
        ("/docker/1234", "/docker/1234"),  # with the names of the host
        ("/", "/"),  # with names of its own
        ("/docker/1234", "/../5678"),  # a process that was moved
    ],
)
def test_a_container_that_sees_its_own_group_only(tmp_path: Path, root: str, group: str) -> None:
    (tmp_path / "cgroup").write_text(f"0::{group}\n")
    (tmp_path / "mountinfo").write_text(f"41 31 0:38 {root} {tmp_path} rw - cgroup2 cgroup2 rw\n")
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert quota(tmp_path) == 0.5


@pytest.mark.parametrize("text", ["", "odd", "1:2", "a b c d e f - cgroup2", " - cgroup x", "\0"])
def test_what_cannot_be_read_is_no_limit(tmp_path: Path, text: str) -> None:
    assert quota(tmp_path / "none") is None
    for name in ("cgroup", "mountinfo"):
        (tmp_path / name).write_text(text)
    assert quota(tmp_path) is None


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Simulate four processors."""
    monkeypatch.setattr(counting, "processors", lambda: frozenset(range(4)))
    for function in (parallelism, cores):
        function.cache_clear()
    yield monkeypatch
    for function in (parallelism, cores):
        function.cache_clear()


@pytest.mark.parametrize(
    ("limit", "expected"), [(None, 4), (0.5, 1), (1, 1), (1.5, 2), (2, 2), (3.01, 4), (64, 4)]
)
def test_a_part_of_a_processor_counts_as_one(
    machine: pytest.MonkeyPatch, limit: float | None, expected: int
) -> None:
    machine.setattr(counting, "quota", lambda: limit)
    assert parallelism() == expected
    assert cores(hyper_threads=True, slow=True) <= expected
    if limit == 0.5:
        assert ov.Core().get_property("CPU", "RANGE_FOR_STREAMS")[1] == 1
        assert devices.Streams.of({}).threads == 1


def counts(tree: ast.Module) -> Iterator[str]:
    """Return the calls by which a module asks the system for processor counts."""
    names = {"cpu_count", "process_cpu_count", "sched_getaffinity"}
    for node in ast.walk(tree):
        found = getattr(node, "attr", None) or (node.id if isinstance(node, ast.Name) else "")
        yield from names.intersection([found])


def test_processors_are_counted_in_one_place() -> None:
    found = {path.relative_to(PACKAGE).as_posix() for path, tree in trees().items() if any(counts(tree))}
    assert found == {"_util/cores.py"}


def test_models_use_the_cores_unless_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(*, hyper_threads: bool, slow: bool) -> int:
        return 4 * (1 + hyper_threads) + 2 * slow

    monkeypatch.setattr(devices, "cores", counted)
    kind = ov.properties.hint.SchedulingCoreType
    for config, threads in (
        ({}, 4),
        ({"ENABLE_HYPER_THREADING": True}, 8),
        ({"SCHEDULING_CORE_TYPE": kind.ANY_CORE}, 6),
        ({"SCHEDULING_CORE_TYPE": kind.PCORE_ONLY}, 4),
        ({"ENABLE_HYPER_THREADING": True, "INFERENCE_NUM_THREADS": 3}, 3),
    ):
        assert devices.Streams.of(config).threads == threads
