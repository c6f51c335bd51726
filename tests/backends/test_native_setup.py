"""Setup of the native backend: finding a library for the processor, and when it is used."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from harness.routines import address_of, forgetting, load, set_words
from harness.snapshots import same_as_before

import ir_runtime as ir
from ir_runtime import backends
from ir_runtime._util.cores import parallelism
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import machine_code
from ir_runtime.backends.native.build import compiler
from ir_runtime.backends.native.build.library import host_target
from ir_runtime.backends.native.build.source import CompileError
from ir_runtime.backends.native.build.systems import this_system
from ir_runtime.backends.native.build.translate import translate
from ir_runtime.backends.native.codegen import levels
from ir_runtime.backends.native.codegen.language import Routine, device, instruction, routine, types
from ir_runtime.backends.native.codegen.memory import SPIN_LIMIT, barrier, fetch_add, load_f32, store_f32
from ir_runtime.backends.native.codegen.target import TARGET
from ir_runtime.backends.native.codegen.targets import TARGETS
from ir_runtime.backends.native.codegen.vectors import F32, Emit
from ir_runtime.backends.native.kernels.quantized_network import levels_winograd
from ir_runtime.backends.native.machine_code import Processor
from ir_runtime.backends.native.threading.parallel import parallel_for, running, threads
from ir_runtime.backends.native.threading.task import UNUSED, Task, shared_counters

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.xml"


@pytest.fixture
def own_routines() -> Iterator[None]:
    with forgetting():
        yield


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An initially empty folder of libraries; nothing about them is cached."""
    folder = tmp_path / "libraries"
    folder.mkdir()
    monkeypatch.setattr(machine_code, "FOLDER", folder)
    monkeypatch.delenv("IR_RUNTIME_BACKEND")
    known = machine_code.library, backends._lack, backends._warn_once
    monkeypatch.setattr(machine_code, "library", machine_code.library.__wrapped__)
    for function in known[1:]:
        function.cache_clear()
    yield folder
    for function in known[1:]:
        function.cache_clear()


_BUILT = machine_code.library().path


def add(folder: Path, name: str = TARGET.name) -> None:
    """Add the library of this processor under the name of a target."""
    shutil.copy(_BUILT, folder / f"{name}{_BUILT.suffix}")


def refused(installed: Path, monkeypatch: pytest.MonkeyPatch, snapshot: str) -> None:
    """Require an error for the backend, and numpy with one warning if no backend is requested."""
    assert "native" not in backends.available()
    with pytest.raises(ir.InputError) as caught:
        backends.load("native")
    file = str(installed / f"{TARGET.name}{_BUILT.suffix}")
    said = re.sub("LIBRARY: .*", "LIBRARY: REASON", str(caught.value).replace(file, "LIBRARY"))
    same_as_before(f"messages/{snapshot}", said)
    with pytest.warns(RuntimeWarning, match="the backend 'numpy' is used, as ") as warned:
        assert ir.compile_model(str(DIGITS)).backend == "numpy"
    assert ir.compile_model(str(DIGITS)).backend == "numpy"  # with warnings as errors
    assert len(warned) == 1
    assert caught.value.message in str(warned[0].message)
    assert caught.value.hint in str(warned[0].message)
    same_as_before(
        f"messages/{snapshot}_by_default",
        re.sub("LIBRARY: .*: ", "LIBRARY: REASON: ", str(warned[0].message).replace(file, "LIBRARY")),
    )


def test_without_a_library_numpy_is_used(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(installed, monkeypatch, "native_missing")


def test_without_a_library_an_installed_package_says_another_way_out(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_code, "is_source_tree", lambda: False)
    refused(installed, monkeypatch, "native_not_in_the_wheel")


def test_a_processor_that_lacks_something(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(installed, "x86-64-v3")
    add(installed, "x86-64-v4")
    old = Processor("x86_64", "GenuineIntel", TARGETS["x86-64-v3"].features - {"avx2", "fma"})
    monkeypatch.setattr(machine_code, "identify", lambda code: old)
    refused(installed, monkeypatch, "native_processor")


def test_a_library_that_is_older_than_its_sources(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(installed)
    monkeypatch.setattr(machine_code, "fingerprint", lambda: b"1" * 32)
    refused(installed, monkeypatch, "native_old")
    monkeypatch.setattr(
        machine_code, "is_source_tree", lambda: False
    )  # as a wheel has what it was built from
    assert machine_code.library().target == TARGET


def test_a_library_that_is_damaged(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (installed / f"{TARGET.name}{_BUILT.suffix}").write_bytes(b"\x7fELF")
    monkeypatch.setattr(machine_code, "is_source_tree", lambda: False)
    refused(installed, monkeypatch, "native_damaged")


def test_the_best_library_that_the_processor_runs_is_used(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reasons against the other libraries are reported."""
    for name in ("x86-64-v3", "x86-64-v3-vnni", "x86-64-v4", "aarch64"):
        add(installed, name)
    known = Processor("x86_64", "GenuineIntel", TARGETS["x86-64-v3-vnni"].features)
    monkeypatch.setattr(machine_code, "identify", lambda code: known)
    found = machine_code.library()
    assert (found.target.name, found.reason) == ("x86-64-v3-vnni", "the best one that the processor can run")
    assert found.others == {
        "x86-64-v3": "a better one is used",
        "x86-64-v4": "the processor lacks avx512bw, avx512cd, avx512dq, avx512f, avx512vl",
        "aarch64": "it is for aarch64, not x86_64",
    }
    monkeypatch.setenv("IR_RUNTIME_TARGET", "x86-64-v3")
    found = machine_code.library()
    assert (found.target.name, found.reason) == ("x86-64-v3", "IR_RUNTIME_TARGET names it")


def test_libraries_for_another_family_are_not_loaded(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source tree has such libraries when wheels are tried on an emulated processor."""
    monkeypatch.setattr(machine_code, "TARGETS", dict(reversed(TARGETS.items())))
    other = next(target for target in TARGETS.values() if target.family != TARGET.family)
    (installed / f"{other.name}{_BUILT.suffix}").write_bytes(b"machine code of another processor")
    with pytest.raises(ir.InputError, match=f"it is for {other.family}, not {TARGET.family}"):
        machine_code.library()
    add(installed)
    found = machine_code.library()
    assert found.target == TARGET
    assert found.others == {other.name: f"it is for {other.family}, not {TARGET.family}"}


def test_a_target_that_is_named_but_not_built(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(installed)
    monkeypatch.setenv("IR_RUNTIME_TARGET", "aarch64")
    with pytest.raises(ir.InputError) as caught:
        backends.load("native")
    same_as_before("messages/native_not_built", str(caught.value))


def test_a_target_that_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_RUNTIME_TARGET", "x86-64-v5")
    with pytest.raises(ir.InputError) as caught:
        machine_code.library.__wrapped__()
    same_as_before("messages/native_target", str(caught.value))


def test_the_processor_is_what_llvm_says() -> None:
    known = {name for name, has in llvm.get_host_cpu_features().items() if has}
    asked = set().union(*(target.features for target in TARGETS.values()))
    assert machine_code.library().processor.features == known & asked
    assert host_target() == TARGET or TARGET.name == os.environ.get("IR_RUNTIME_TARGET")


def words_of(**registers: int) -> Any:
    """Return the words that `identify` stores for a processor with all features, with some replaced."""
    words = (ctypes.c_int64 * 21)(*[0xFFFFFFFF] * 21)
    for place, value in registers.items():
        words[int(place[1:])] = value
    return words


def test_registers_that_the_system_does_not_save_are_not_used() -> None:
    """Virtual machines, or boot options, may disable them."""
    every = machine_code._x86(words_of()).features
    assert TARGETS["x86-64-v4-bf16"].features <= every
    without = machine_code._x86(words_of(_20=0x07)).features
    assert {name for name in every if name.startswith("avx512")} == every - without
    assert not machine_code._x86(words_of(_20=0x01)).features & TARGETS["x86-64-v3"].features - {
        "sse2", "bmi", "bmi2", "lzcnt", "movbe",
    }  # fmt: skip


def test_the_fingerprint_is_of_contents_alone(tmp_path: Path) -> None:
    """A copy of a source tree with other file times uses the libraries of the original."""
    original, copied = Path(machine_code._PACKAGE), tmp_path / "copied"
    shutil.copytree(original, copied, ignore=shutil.ignore_patterns("__pycache__", "libraries"))
    for path in copied.rglob("*.py"):
        os.utime(path, (1, 1))
    assert machine_code._hash(str(copied)) == machine_code.fingerprint()
    changed = copied / "kernels" / "pooling.py"
    before = changed.stat()
    changed.write_bytes(changed.read_bytes().replace(b"0", b"1", 1))  # of the same size
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert machine_code._hash(str(copied)) != machine_code.fingerprint()


@pytest.mark.skipif(not levels._HAS_VNNI, reason="needs VNNI")
def test_dot_products_of_pairs_are_one_instruction() -> None:
    """Otherwise LLVM replaces some by two instructions, for a shorter latency."""
    text = assembly(levels_winograd)
    assert "vpdpwssd" in text
    assert "vpmaddwd" not in text


def assembly(kernel: Routine) -> str:
    machine = compiler.target_machine(TARGET, this_system(TARGET.family).triple)
    return str(machine.emit_assembly(compiler.optimise(compiler.text_of(kernel, TARGET), machine)))


def doubling(name: str) -> Task:
    """Double eight elements, one per unit."""

    def double(call: int, _job: int, out: int, x: int) -> None:
        counter = shared_counters(call)
        while True:
            unit = fetch_add(counter)
            if unit >= 8:
                break
            store_f32(out, unit, load_f32(x, unit) * np.float32(2))

    task = Task(double, name)
    load(task)
    return task


def doubled(task: Task, count: int = 1) -> Any:
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    parallel_for(task.address, np.zeros(1, np.int64), out, x, UNUSED, UNUSED, count)
    np.testing.assert_array_equal(out, 2 * x)


@device
def tripled(x: float) -> Any:
    return x * np.float32(3)


def test_a_device_is_one_function_which_is_inlined_where_that_pays(own_routines: None) -> None:
    @routine(types.int64)
    def twice(at: int) -> None:
        store_f32(at, 0, tripled(tripled(load_f32(at, 0))))

    functions = translate(twice).functions.values()
    assert [function.name for function in functions if function.blocks] == [twice.name, "tripled.0"]
    assert "tripled" not in assembly(twice)  # LLVM inlines it


@instruction(types.float32, returns=types.float32)
def of_the_library(emit: Emit, x: Any) -> Any:
    return emit.builder.call(emit.function("lgammaf", F32, F32), [x])


def test_kernels_that_need_more_than_there_is_are_refused(own_routines: None) -> None:
    @routine(types.int64)
    def curious(address: int) -> None:
        store_f32(address, 0, of_the_library(load_f32(address, 0)))

    with pytest.raises(CompileError, match=r"curious cannot run by itself: it calls lgammaf"):
        load(curious)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_threads_share_units(own_routines: None, count: int) -> None:
    task = doubling(f"shared_{count}")
    with at_most(count), running():
        assert threads() == min(count, parallelism())
        for _ in range(200):
            doubled(task, count)
    time.sleep(0.05)  # the pool has gone to sleep, and wakes again
    with at_most(count), running():
        doubled(task, count)


def test_who_waits_lets_others_have_the_core(own_routines: None) -> None:
    """After some polls, a waiting thread yields the core; here the condition holds after the third yield."""

    @routine(types.int64, returns=types.int64)
    def wait(at: int) -> int:
        return barrier(at, 1, at + 8)

    words = np.zeros(2, np.int64)
    yielded: list[int] = []

    @ctypes.CFUNCTYPE(ctypes.c_int32)
    def yield_core() -> int:
        yielded.append(1)
        words[0] = len(yielded) >= 3
        return 0

    set_words(load(wait), **{"yield": address_of(yield_core)})
    waiting = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(machine_code.library().address(wait.name))
    ending = threading.Timer(
        60, words.__setitem__, (1, 1)
    )  # instead of waiting for ever, should it not yield
    ending.start()
    polls = waiting(words.ctypes.data)
    ending.cancel()
    assert polls == SPIN_LIMIT + 3
    assert len(yielded) == 3


@pytest.mark.skipif(not TARGET.is_x86, reason="the instruction is one of x86")
def test_who_waits_tells_the_processor(own_routines: None) -> None:
    @routine(types.int64)
    def wait(at: int) -> None:
        barrier(at, 1, at + 8)

    assert "pause" in assembly(wait)


def test_small_models_run_on_machine_code_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IR_RUNTIME_BACKEND")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ir.compile_model(str(DIGITS)).backend == "native"


def test_kernels_are_loaded_without_what_builds_them() -> None:
    """Neither the compiler nor a linker is imported."""
    load = (
        "import sys; from ir_runtime import backends; backends.load('native')\n"
        "print([name for name in sys.modules if name.startswith(('ir_runtime.backends.native.build', 'llvmlite', 'zig'))])"
    )
    found = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the linker's output differs in other places elsewhere")
def test_the_same_sources_yield_the_same_bytes(tmp_path: Path) -> None:
    """Builds are reproducible across processes, folders and set orders."""
    code = (
        "import sys; from pathlib import Path; from harness.routines import link_routines\n"
        "from ir_runtime.backends.native.threading.tape import replay_tape\n"
        "link_routines([replay_tape], Path(sys.argv[1]))"
    )
    made = set()
    for seed in ("1", "2"):
        file = tmp_path / seed / "made.so"
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1])}
        subprocess.run([sys.executable, "-c", code, str(file)], check=True, env=environment)
        made.add(hashlib.sha256(file.read_bytes()).hexdigest())
    assert len(made) == 1


def test_the_former_name_is_refused_with_the_present_one() -> None:
    with pytest.raises(ir.InputError, match="unknown backend 'numba'") as caught:
        backends.load("numba")
    assert caught.value.hint.startswith("did you mean 'native'? ")
