"""What the numba backend needs around it: the package, machine code in a folder, a kind of vectors; and when it is used."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.nets import Net
from harness.snapshots import same_as_before

import ir_runtime as ir
from ir_runtime import _version, backends
from ir_runtime._util.cores import parallelism, processors
from ir_runtime.backends.core import default as _usual
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.numba.build import compiler
from ir_runtime.backends.numba.build.source import CompileError
from ir_runtime.backends.numba.build.translate import translate
from ir_runtime.backends.numba.codegen import language as _language
from ir_runtime.backends.numba.codegen import levels, target
from ir_runtime.backends.numba.codegen.language import Routine, device, instruction, routine, types
from ir_runtime.backends.numba.codegen.memory import (
    SPIN_LIMIT,
    barrier,
    fetch_add,
    load_f32,
    store_f32,
)
from ir_runtime.backends.numba.codegen.vectors import F32, Emit
from ir_runtime.backends.numba.kernels._int8_winograd import LEVELS_WINOGRAD
from ir_runtime.backends.numba.machine_code import build_all, cache, loader
from ir_runtime.backends.numba.machine_code.host import target_machine
from ir_runtime.backends.numba.threading.parallel import parallel_for, running, threads
from ir_runtime.backends.numba.threading.task import UNUSED, Task, load_args

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.xml"


def test_without_llvmlite_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_missing", lambda name: "llvmlite" if name == "numba" else None)
    assert "numba" not in backends.available()
    with pytest.raises(ir.InputError) as caught:
        backends.load("numba")
    same_as_before("messages/numba_missing", str(caught.value))


def test_an_unknown_kind_of_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_RUNTIME_VECTORS", "mmx")
    with pytest.raises(ir.InputError) as caught:
        target._selected()
    same_as_before("messages/numba_vectors", str(caught.value))


@pytest.mark.skipif(not levels._HAS_VNNI, reason="needs VNNI")
def test_dot_products_of_pairs_are_one_instruction() -> None:
    """LLVM else replaces those of some tiles by two, for a shorter latency."""
    text = assembly(LEVELS_WINOGRAD)
    assert "vpdpwssd" in text
    assert "vpmaddwd" not in text


def assembly(kernel: Routine) -> str:
    machine = target_machine(target.TARGET.processor)
    return str(machine.emit_assembly(compiler.optimised(translate(kernel), machine)))


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of its own, and no kernels but those that a test makes."""
    monkeypatch.setattr(_language, "ROUTINES", {})
    monkeypatch.setattr(loader, "ROUTINES", _language.ROUTINES)
    monkeypatch.setattr(build_all, "iter_modules", lambda *_: [])
    monkeypatch.setenv("IR_RUNTIME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def doubling(name: str) -> Task:
    """Doubles eight numbers, a unit each."""

    def double(call: int) -> None:
        _, out, x, _, _, counter = load_args(call)
        while True:
            unit = fetch_add(counter)
            if unit >= 8:
                break
            store_f32(out, unit, load_f32(x, unit) * np.float32(2))

    double.__qualname__ = name
    return Task(double)


def doubled(task: Task, count: int = 1) -> Any:
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    parallel_for(task.address, np.zeros(1, np.int64), out, x, UNUSED, UNUSED, count)
    np.testing.assert_array_equal(out, 2 * x)


def file_of(task: Task) -> Path:
    folder = cache.folder()
    assert folder is not None
    return folder / f"{task.name}.o"


def test_machine_code_is_made_once_and_kept(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = doubling("kept")
    assert loader.missing() == [task]
    doubled(task)
    file = file_of(task)
    assert file.is_relative_to(own_cache)
    assert loader.missing() == []
    assert not build_all.ready()  # for there may be more of them
    assert list(build_all.build_all()) == []
    assert build_all.ready()
    made = file.read_bytes()
    monkeypatch.setattr(loader, "build", lambda routine: pytest.fail("it is there already"))
    again = loader.Loader()
    assert again.address(task)
    assert file.read_bytes() == made


@device
def tripled(x: float) -> Any:
    return x * np.float32(3)


def test_a_device_is_one_function_which_is_inlined_where_that_pays(own_cache: Path) -> None:
    @routine(types.int64)
    def twice(at: int) -> None:
        store_f32(at, 0, tripled(tripled(load_f32(at, 0))))

    functions = translate(twice).functions.values()
    assert [function.name for function in functions if function.blocks] == [twice.name, "tripled.0"]
    assert "tripled" not in assembly(twice)  # LLVM inlines it


@pytest.mark.parametrize("damage", [b"", b"1234", b"123456789"])
def test_damaged_machine_code_is_compiled_again(own_cache: Path, damage: bytes) -> None:
    task = doubling(f"damaged_{len(damage)}")
    file = file_of(task)
    cache.make_folder(file.parent)
    file.write_bytes(damage)
    doubled(task)
    assert len(file.read_bytes()) > 100


def test_a_folder_that_cannot_be_written_is_only_a_warning(own_cache: Path) -> None:
    own_cache.touch()  # a file is where a folder should be
    cache._warn_once.cache_clear()
    task = doubling("unwritable")
    with pytest.warns(RuntimeWarning) as caught:
        doubled(task)
    said = str(caught[0].message).replace(str(cache.folder()), "CACHE")
    same_as_before("messages/numba_folder", said)
    with pytest.warns(RuntimeWarning) as caught:
        build_all.in_background()
    said = str(caught[0].message).replace(str(cache.folder()), "CACHE")
    same_as_before("messages/numba_background", said)


def test_the_folder_depends_on_vectors_and_on_what_machine_code_depends_on(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = cache.folder()
    assert found is not None
    assert found.parent == own_cache / "ir_runtime"
    assert found.name.startswith(f"{_version.__version__}-{target.TARGET.name}-")
    monkeypatch.setattr(cache, "_fingerprint", lambda: "1")
    assert cache.folder() != found


def test_the_folder_depends_on_contents_of_files_alone(tmp_path: Path) -> None:
    """A copy of an installation, whose files have other times, finds the kernels of the original."""
    original, copied = Path(cache.__file__).parents[1], tmp_path / "copied"
    shutil.copytree(original, copied, ignore=shutil.ignore_patterns("__pycache__"))
    for path in copied.rglob("*.py"):
        os.utime(path, (1, 1))
    assert hash_of(copied) == hash_of(original)
    changed = copied / "kernels" / "pooling.py"
    before = changed.stat()
    changed.write_bytes(changed.read_bytes().replace(b"0", b"1", 1))  # of the same size
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert hash_of(copied) != hash_of(original)


def hash_of(folder: Path) -> str:
    """What the name of the cache folder has of files in a folder."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cache, "__file__", str(folder / "machine_code" / "cache.py"))
        return cache._fingerprint.__wrapped__()  # type: ignore[no-any-return]


@instruction(types.float32, returns=types.float32)
def of_the_library(emit: Emit, x: Any) -> Any:
    return emit.builder.call(emit.function("lgammaf", F32, F32), [x])


def test_kernels_that_need_more_than_there_is_are_refused(own_cache: Path) -> None:
    @routine(types.int64)
    def curious(address: int) -> None:
        store_f32(address, 0, of_the_library(load_f32(address, 0)))

    with pytest.raises(CompileError, match=r"curious cannot run by itself: it calls lgammaf"):
        loader.loader().address(curious)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_threads_share_units(own_cache: Path, count: int) -> None:
    task = doubling(f"shared_{count}")
    with at_most(count), running():
        assert threads() == min(count, parallelism())
        for _ in range(200):
            doubled(task, count)
    time.sleep(0.05)  # the pool has gone to sleep, and wakes again
    with at_most(count), running():
        doubled(task, count)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads choose their core on Linux only")
def test_who_waits_lets_others_have_the_core(own_cache: Path) -> None:
    """On one core, each poll after the first ones gives what is waited for a slice of time."""

    @routine(types.int64, returns=types.int64)
    def wait(at: int) -> int:
        return barrier(at, 1, at + 8)

    @routine(types.int64)
    def work(at: int) -> None:
        for _ in range(10_000_000):
            fetch_add(at + 64)
        fetch_add(at)

    words, core = np.zeros(16, np.int64), min(processors())
    waiting = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loader.loader().address(wait))
    working = ctypes.CFUNCTYPE(None, ctypes.c_int64)(loader.loader().address(work))

    def on_core(function: Any) -> Any:
        os.sched_setaffinity(0, {core})  # of this thread
        return function(words.ctypes.data)

    with ThreadPoolExecutor(2) as pool:
        polls = pool.submit(on_core, waiting)
        pool.submit(on_core, working).result()
    assert polls.result() < 3 * SPIN_LIMIT


@pytest.mark.skipif(not target.TARGET.is_x86, reason="the instruction is one of x86")
def test_who_waits_tells_the_processor(own_cache: Path) -> None:
    @routine(types.int64)
    def wait(at: int) -> None:
        barrier(at, 1, at + 8)

    assert "pause" in assembly(wait)


def test_small_models_run_on_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IR_RUNTIME_BACKEND")
    monkeypatch.setattr(build_all, "ready", lambda: pytest.fail("not even looked at"))
    assert ir.compile_model(str(DIGITS)).backend == "numpy"


def test_numba_is_used_once_its_kernels_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    monkeypatch.setattr(build_all, "in_background", lambda: begun.append(1))
    monkeypatch.setattr(build_all, "ready", lambda: False)
    assert _usual.default_backend(True, begin=False) == "numpy"
    assert begun == []
    assert _usual.default_backend(True) == "numpy"
    assert begun == [1]
    monkeypatch.setattr(build_all, "ready", lambda: True)
    assert _usual.default_backend(True) == "numba"
    monkeypatch.setattr(_usual, "find_spec", lambda name: None)
    assert _usual.default_backend(True) == "numpy"
    assert begun == [1]


def large() -> ir.Model:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "512,512", out="FP32 512 512"), out="FP32 512 512"))
    return ir.read_model(net.xml())


@pytest.mark.parametrize("ready", [True, False])
def test_what_answers_until_kernels_are_there_is_provisional(
    ready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IR_RUNTIME_BACKEND", raising=False)
    monkeypatch.setattr(build_all, "in_background", lambda: None)
    monkeypatch.setattr(build_all, "ready", lambda: ready)
    usual = ir.compile_model(large())
    assert (usual.backend, usual.provisional) == (("numba", False) if ready else ("numpy", True))
    for asked in backends.available():
        compiled = ir.compile_model(large(), backend=asked)
        assert (compiled.backend, compiled.provisional) == (asked, False)
    assert not ir.compile_model(str(DIGITS)).provisional
    monkeypatch.setenv("IR_RUNTIME_BACKEND", "numpy")
    assert not ir.compile_model(large()).provisional


def test_a_broken_installation_is_only_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> bool:
        raise OSError("libllvmlite.so is damaged")

    monkeypatch.setattr(build_all, "ready", broken)
    assert _usual.default_backend(True, begin=False) == _usual.eventual_backend(True) == "numpy"
    with pytest.warns(RuntimeWarning) as caught:
        assert _usual.default_backend(True) == "numpy"
    same_as_before("messages/numba_broken", str(caught[0].message))


def test_one_process_makes_kernels_in_the_background(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(build_all, "start_in_background", started.append)
    with build_all.BuildLock.acquire() as acquired:
        assert acquired
        build_all.in_background()
        with build_all.BuildLock.acquire() as again:
            assert not again
    assert started == []
    build_all.in_background()
    assert started == ["ir_runtime.backends.numba"]
    with pytest.raises(ZeroDivisionError), build_all.BuildLock.acquire():
        raise ZeroDivisionError
    build_all.in_background()
    assert len(started) == 1  # what failed is not tried again at once


def test_kernels_are_loaded_without_what_builds_them() -> None:
    """Their translation must not be imported where machine code is there."""
    load = (
        "import sys; from ir_runtime import backends; backends.load('numba')\n"
        "print([name for name in sys.modules if name.startswith('ir_runtime.backends.numba.build')])"
    )
    found = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


@pytest.fixture
def warned() -> None:
    cache._warn_once.cache_clear()


def refused(match: str, task: Task) -> str:
    """The one warning; the kernel works all the same, and nothing of it is kept."""
    cache._check_once.cache_clear()
    with pytest.warns(RuntimeWarning, match=match) as caught:
        doubled(task)
    doubled(task)  # with warnings as errors
    assert len(caught) == 1
    return str(caught[0].message)


@pytest.mark.usefixtures("warned")
def test_a_relative_folder_is_refused(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IR_RUNTIME_CACHE", "here")
    monkeypatch.chdir(tmp_path)
    said = refused("must be an absolute path", doubling("relative"))
    same_as_before("messages/numba_cache_folder", said)
    assert not build_all.ready()
    assert list(tmp_path.iterdir()) == []


def test_the_command_needs_a_folder() -> None:
    environment = os.environ | {"IR_RUNTIME_CACHE": "here"}
    command = [sys.executable, "-W", "ignore", "-m", "ir_runtime", "kernels"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    same_as_before("messages/numba_cache_command", done.stderr.strip())


@pytest.mark.usefixtures("warned")
@pytest.mark.filterwarnings("ignore:compiled kernels cannot be cached")
def test_the_working_directory_is_never_the_cache(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The convention says that a relative path is as good as none."""
    monkeypatch.delenv("IR_RUNTIME_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.chdir(tmp_path)
    found = cache.folder()
    assert found is None or (found.is_absolute() and not found.is_relative_to(tmp_path))


def test_an_empty_setting_means_the_usual_folder(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in ("IR_RUNTIME_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, "")
    found = cache.folder()
    assert found is not None
    assert found.is_relative_to(tmp_path / "home")


posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="who may write is said by modes on POSIX only")
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files to others"
)


@posix
@pytest.mark.usefixtures("warned")
@pytest.mark.parametrize(
    ("mode", "level"),
    [*product([0o777, 0o770, 0o720], [0, 1]), *product([0o777], [2, 3])],
)
def test_a_folder_that_others_may_write_to_is_refused(own_cache: Path, mode: int, level: int) -> None:
    task = doubling(f"shared_{mode}_{level}")
    doubled(task)
    made = file_of(task)
    assert made.stat().st_mode & 0o777 == 0o600
    assert made.parent.stat().st_mode & 0o777 == 0o700
    made.parents[level].chmod(mode)
    refused("may be written by others", doubling(f"refused_{mode}_{level}"))


@posix
@pytest.mark.usefixtures("warned")
def test_a_file_that_others_may_write_is_made_anew(own_cache: Path) -> None:
    task = doubling("written_by_others")
    doubled(task)
    file_of(task).chmod(0o606)
    with pytest.warns(RuntimeWarning, match="may be written by others") as caught:
        assert cache.load(task.name) is None
    said = str(caught[0].message).replace(str(file_of(task)), "CACHE/kernel.o")
    same_as_before("messages/numba_cache_file", said)
    loader.build(task)
    assert cache.load(task.name) is not None


@as_root
@pytest.mark.usefixtures("warned")
def test_what_belongs_to_another_user_is_refused(own_cache: Path) -> None:
    task = doubling("of_another")
    doubled(task)
    file = file_of(task)
    os.chown(file, 12345, -1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert cache.load(task.name) is None
    os.chown(file, 0, -1)
    assert cache.load(task.name) is not None
    os.chown(file.parent, 12345, -1)
    cache._check_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert cache.folder() is None


@posix
def test_a_link_is_not_followed(own_cache: Path, tmp_path: Path) -> None:
    task = doubling("linked")
    doubled(task)
    file = file_of(task)
    file.rename(tmp_path / "elsewhere.o")
    file.symlink_to(tmp_path / "elsewhere.o")
    assert cache.load(task.name) is None


def test_code_that_was_changed_is_not_loaded(own_cache: Path) -> None:
    task = doubling("changed")
    doubled(task)
    file = file_of(task)
    code = bytearray(file.read_bytes())
    code[-1] ^= 1
    file.write_bytes(code)
    assert cache.load(task.name) is None


def test_a_full_disk_frees_what_other_versions_left(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = doubling("full")
    old = own_cache / "ir_runtime" / "0.0.1-avx2-00000000"
    old.mkdir(parents=True, mode=0o700)
    (old / "kernel.o").write_bytes(b"x" * 100)
    for folder in (old, old.parent):
        folder.chmod(0o700)
    write = cache._write

    def on_a_full_disk(*given: Any) -> None:
        if old.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        write(*given)

    monkeypatch.setattr(cache, "_write", on_a_full_disk)
    doubled(task)
    assert not old.exists()
    assert cache.load(task.name) is not None


@posix
def test_a_user_without_a_home_works_without_a_cache() -> None:
    """As in a container whose user is in no list of users."""
    code = """
import os, pwd, warnings
def getpwuid(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")
pwd.getpwuid = getpwuid
from ir_runtime.backends.core import default
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(default.default_backend(True), [str(w.message) for w in caught])
"""
    homeless = {
        name: value
        for name, value in os.environ.items()
        if name not in ("HOME", "IR_RUNTIME_BACKEND", "IR_RUNTIME_CACHE", "XDG_CACHE_HOME")
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=homeless)
    assert done.stdout.startswith("numpy ["), done.stderr
    assert done.stdout.count("compiled kernels cannot be cached") == 1


@pytest.mark.oracle
def test_the_command_makes_all_kernels(tmp_path: Path) -> None:
    environment = os.environ | {"IR_RUNTIME_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "ir_runtime", "kernels"]
    for said in ("new, in", "0 of them new, in"):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert said in done.stdout
        assert done.stderr == ""
