"""Startup: interrupts during any import, and address spaces too small for the imports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from harness.nets import passing, write
from harness.snapshots import same_as_before

import ir_runtime
from ir_runtime._util import interrupts
from ir_runtime.cli import address_space

resource = pytest.importorskip("resource", reason="limits on the address space are of POSIX")

# Interrupts itself at an import, counted from the one of the module that has the entry point.
INTERRUPTED = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
count, at = 0, int(sys.argv.pop(1))

def hook(event, arguments):
    global count
    if event == "import":
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGINT)

import ir_runtime.__main__
sys.addaudithook(hook)
sys.argv[0] = "ir-runtime"
try:
    ir_runtime.__main__.main()
finally:
    print(count)
"""
NEVER = 1 << 30


def start(code: str, *arguments: object, **more: object) -> subprocess.CompletedProcess[str]:
    package = str(Path(ir_runtime.__file__).parents[1])
    command = [sys.executable, "-P", "-c", code, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": package}
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", env=environment, check=False, **more
    )  # type: ignore[call-overload, no-any-return]


def test_an_interrupt_at_any_import_is_one_line(folder: Path) -> None:
    write(folder, passing("f32", "2"))
    np.save("x.npy", np.ones(2, np.float32))
    line = ("run", "net.xml", "-i", "x.npy")
    whole = start(INTERRUPTED, NEVER, *line)
    count = int(whole.stdout.splitlines()[-1])
    assert (whole.returncode, whole.stderr) == (0, "")
    assert count > 200
    for place in (*range(1, 16, 2), *range(20, count, count // 8)):
        done = start(INTERRUPTED, place, *line)
        assert (done.returncode, done.stderr) == (130, "interrupted\n"), (place, done.stderr)


def forget_and_wait(owners: list[object]) -> None:
    owners.clear()
    time.sleep(60)


def test_an_interrupt_that_python_ignores_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example, in callbacks of the import system."""

    class Owner:
        pass

    former = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        interrupts.catch()
        owners: list[object] = [Owner()]
        kept = weakref.ref(owners[0], lambda _: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt), interrupts.raise_interrupts():
            forget_and_wait(owners)
        assert kept() is None
    finally:
        signal.signal(signal.SIGINT, former)


def test_interrupts_that_are_ignored_stay_so() -> None:
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupts.catch()
        with interrupts.raise_interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, former)


LIMITED = """\
import resource, sys
limit = int(sys.argv.pop(1)) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
import ir_runtime.__main__
sys.argv[0] = "ir-runtime"
ir_runtime.__main__.main()
"""


@pytest.mark.parametrize("megabytes", [24, 30, 45, 60, 75, 90, 105, 120, 150, 180])
def test_a_small_address_space_is_said(folder: Path, megabytes: int) -> None:
    """The size from which the model runs depends on the libraries."""
    write(folder, passing("f32", "2"))
    np.save("x.npy", np.ones(2, np.float32))
    done = start(LIMITED, megabytes, "run", "net.xml", "-i", "x.npy", "--json")
    if done.returncode:
        said = done.stderr.splitlines()
        assert (done.returncode, len(said)) == (5, 1), done.stderr
        assert said[0].startswith("error: not enough memory"), done.stderr
    else:
        assert megabytes > 60
        assert json.loads(done.stdout)


def test_the_limit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_space, "_limit", lambda: 60 << 20)
    unmapped = ImportError("numpy.so: failed to map segment from shared object")
    said = [address_space.shortage(problem) for problem in (MemoryError(), unmapped, ImportError(""))]
    monkeypatch.setattr(address_space, "_limit", lambda: None)
    said.append(address_space.shortage(unmapped))
    same_as_before("messages/address_space", "\n".join(map(str, said)))
    assert address_space.shortage(ImportError("cannot import name 'x'")) is None
    assert address_space.shortage(ModuleNotFoundError("cannot allocate memory")) is None


def test_numpy_is_tried_where_the_address_space_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_space, "_limit", lambda: 60 << 20)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr("ir_runtime._util.child_process.can_import", lambda name: False)
    address_space.check_before_numpy()
    assert not any(isinstance(finder, address_space._Check) for finder in sys.meta_path), "it is imported"
    finder = address_space._Check()
    sys.meta_path.insert(0, finder)
    assert finder.find_spec("lxml") is None
    with pytest.raises(MemoryError) as caught:
        finder.find_spec("numpy")
    assert finder not in sys.meta_path
    same_as_before("messages/address_space_numpy", str(caught.value))
