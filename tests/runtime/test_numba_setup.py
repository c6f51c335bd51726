"""What the numba backend needs around it: the package, machine code in a folder, a kind of vectors; and when it is used."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.snapshots import same_as_before

import ir_runtime as ir
from ir_runtime import backends
from ir_runtime.backends import _usual
from ir_runtime.backends.numba import _language, _machine, _making, _target
from ir_runtime.backends.numba._language import routine, types
from ir_runtime.backends.numba._threads import running, share, threads
from ir_runtime.backends.numba._work import NOTHING, Worker, given, number, put_number, take
from ir_runtime.backends.threads import at_most

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.xml"


def test_without_numba_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_missing", lambda name: "numba" if name == "numba" else None)
    assert "numba" not in backends.available()
    with pytest.raises(ir.InputError) as caught:
        backends.load("numba")
    same_as_before("messages/numba_missing", str(caught.value))


def test_an_unknown_kind_of_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_RUNTIME_VECTORS", "mmx")
    with pytest.raises(ir.InputError) as caught:
        _target._chosen()
    same_as_before("messages/numba_vectors", str(caught.value))


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of its own, and no kernels but those that a test makes."""
    monkeypatch.setattr(_language, "ROUTINES", {})
    monkeypatch.setattr(_machine, "ROUTINES", _language.ROUTINES)
    monkeypatch.setattr(_making, "iter_modules", lambda *_: [])
    monkeypatch.setenv("IR_RUNTIME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def doubling(name: str) -> Worker:
    """Doubles eight numbers, a unit each."""

    def double(call: int) -> None:
        _, out, x, _, _, counter = given(call)
        while True:
            unit = take(counter)
            if unit >= 8:
                break
            put_number(out, unit, number(x, unit) * np.float32(2))

    double.__qualname__ = name
    return Worker(double)


def doubled(worker: Worker, count: int = 1) -> Any:
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    share(worker.address, np.zeros(1, np.int64), out, x, NOTHING, NOTHING, count)
    np.testing.assert_array_equal(out, 2 * x)


def test_machine_code_is_made_once_and_kept(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = doubling("kept")
    assert _machine.missing() == [worker]
    doubled(worker)
    file = _machine.folder() / f"{worker.name}.o"
    assert file.is_relative_to(alone)
    assert _machine.missing() == []
    assert not _making.ready()  # for there may be more of them
    assert list(_making.make_all()) == []
    assert _making.ready()
    made = file.read_bytes()
    monkeypatch.setattr(_machine, "make", lambda routine: pytest.fail("it is there already"))
    again = _machine.Machine()
    assert again.address(worker)
    assert file.read_bytes() == made


@pytest.mark.parametrize("damage", [b"", b"1234", b"123456789"])
def test_damaged_machine_code_is_made_anew(alone: Path, damage: bytes) -> None:
    worker = doubling(f"damaged_{len(damage)}")
    file = _machine.folder() / f"{worker.name}.o"
    file.parent.mkdir(parents=True)
    file.write_bytes(damage)
    doubled(worker)
    assert len(file.read_bytes()) > 100


def test_a_folder_that_cannot_be_written_is_only_a_warning(alone: Path) -> None:
    alone.touch()  # a file is where a folder should be
    _machine._warn_once.cache_clear()
    worker = doubling("unwritable")
    with pytest.warns(RuntimeWarning) as caught:
        doubled(worker)
    said = str(caught[0].message).replace(str(_machine.folder()), "CACHE")
    same_as_before("messages/numba_folder", said)
    with pytest.warns(RuntimeWarning) as caught:
        _making.in_background()
    said = str(caught[0].message).replace(str(_machine.folder()), "CACHE")
    same_as_before("messages/numba_background", said)


def test_the_folder_depends_on_vectors_and_on_what_machine_code_follows_from(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _machine.folder()
    assert found.parent == alone / "ir_runtime"
    assert found.name.startswith(f"{ir.__version__}-{_target.TARGET.name}-")
    monkeypatch.setattr(_machine, "_fingerprint", lambda: 1)
    assert _machine.folder() != found


def test_kernels_that_need_more_than_there_is_are_refused(alone: Path) -> None:
    @routine(types.int64)
    def curious(address: int) -> None:
        put_number(address, 0, np.float32(math.lgamma(number(address, 0))))

    with pytest.raises(RuntimeError, match=r"cannot run by itself: it calls .*lgamma"):
        _machine.machine().address(curious)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_threads_share_units(alone: Path, count: int) -> None:
    worker = doubling(f"shared_{count}")
    with at_most(count), running():
        assert threads() == min(count, os.cpu_count() or 1)
        for _ in range(200):
            doubled(worker, count)
    time.sleep(0.05)  # the team has gone to sleep, and wakes again
    with at_most(count), running():
        doubled(worker, count)


def test_small_models_run_on_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IR_RUNTIME_BACKEND")
    monkeypatch.setattr(_making, "ready", lambda: pytest.fail("not even looked at"))
    assert ir.compile_model(str(DIGITS)).backend == "numpy"


def test_numba_is_used_once_its_kernels_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    monkeypatch.setattr(_making, "in_background", lambda: begun.append(1))
    monkeypatch.setattr(_making, "ready", lambda: False)
    assert _usual.usual(True, begin=False) == "numpy"
    assert begun == []
    assert _usual.usual(True) == "numpy"
    assert begun == [1]
    monkeypatch.setattr(_making, "ready", lambda: True)
    assert _usual.usual(True) == "numba"
    monkeypatch.setattr(_usual, "find_spec", lambda name: None)
    assert _usual.usual(True) == "numpy"
    assert begun == [1]


def test_a_broken_installation_is_only_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> bool:
        raise OSError("libllvmlite.so is damaged")

    monkeypatch.setattr(_making, "ready", broken)
    assert _usual.usual(True, begin=False) == "numpy"
    with pytest.warns(RuntimeWarning) as caught:
        assert _usual.usual(True) == "numpy"
    same_as_before("messages/numba_broken", str(caught[0].message))


def test_one_process_makes_kernels_in_the_background(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(_making.subprocess, "Popen", lambda command, **_: started.append(command))
    with _making.Making.marked() as ours:
        assert ours
        _making.in_background()
        with _making.Making.marked() as theirs:
            assert not theirs
    assert started == []
    _making.in_background()
    assert started == [[sys.executable, "-m", "ir_runtime.backends.numba"]]
    with pytest.raises(ZeroDivisionError), _making.Making.marked():
        raise ZeroDivisionError
    _making.in_background()
    assert len(started) == 1  # what failed is not tried again at once


def test_kernels_are_loaded_without_numba() -> None:
    """What makes machine code takes half a second to import; it must not be needed where that is there."""
    load = (
        "import sys; from ir_runtime import backends; backends.load('numba'); print('numba' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


@pytest.mark.oracle
def test_the_command_makes_all_kernels(tmp_path: Path) -> None:
    environment = os.environ | {"IR_RUNTIME_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "ir_runtime", "kernels"]
    for said in ("new, in", "0 of them new, in"):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert said in done.stdout
        assert done.stderr == ""
