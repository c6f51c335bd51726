"""Inject one fault at a time: a failing call of the file system, a failing allocation, or a full disk.

Each fault must give one message and a failure's exit code; the target is complete or unchanged, no temporary or open file
remains; and a repetition without a fault succeeds with the same result.
"""

from __future__ import annotations

import builtins
import errno
import gc
import os
import resource
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from click.testing import CliRunner
from harness.memory import failing
from harness.nets import write_chain

import ir_runtime as ir
from ir_runtime._util import files
from ir_runtime.cli import main
from ir_runtime.dask import cluster, job

_FUNCTIONS = ("open", "fsync", "replace", "rename", "mkdir")
_METHODS = ("write", "flush", "truncate", "close")


class Calls:
    """Counts the calls of all threads; ``failed`` is the name of the call that failed."""

    def __init__(self, number: int) -> None:
        self.count, self.failed = 0, ""
        self._number, self._lock = number, threading.Lock()

    def fails(self, name: str) -> bool:
        """Count a call; return whether it must fail."""
        with self._lock:
            self.count += 1
            if self.count == self._number:
                self.failed = name
            return self.count == self._number


def _full(name: str) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)


class _File:
    """An open file whose methods may fail."""

    def __init__(self, file: Any, calls: Calls) -> None:
        self._file, self._calls = file, calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._file, name)
        if name not in _METHODS or self._file.closed:
            return found

        def method(*args: Any) -> Any:
            if not self._calls.fails(name):
                return found(*args)
            if name == "close":  # a file is closed, also where that says that it is not written
                found()
            elif name == "write" and len(args[0]) > 1:  # a disk that is nearly full takes a part
                found(memoryview(args[0]).cast("B")[: len(memoryview(args[0]).cast("B")) // 2])
            raise _full("")

        return method

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._file)


@contextmanager
def failing_call(number: int) -> Iterator[Calls]:
    """Let call ``number`` fail, counted from 1; with 0, only count."""
    calls = Calls(number)

    def opened(*args: Any, **options: Any) -> Any:
        return _File(builtins.open(*args, **options), calls)

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller.startswith("ir_runtime.") and calls.fails(name):
                raise _full(str(args[0]))
            return function(*args, **options)

        return call

    with patch.object(files, "open", opened, create=True), ExitStack() as patches:
        for name in _FUNCTIONS:
            patches.enter_context(patch.object(os, name, counted(name, getattr(os, name))))
        yield calls


def open_files() -> set[str]:
    """Return the open files of this process that belong to a folder."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:  # that of the listing
            continue
    return {path for path in found if path.startswith("/") and not path.startswith("/dev/")}


pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are listed by Linux")

Contents = Mapping[str, bytes]

MOST = 4
"""How many faults of an operation are caused, unless it is all."""

BY_ROWS = "run rows.xml -i long.npy --chunk 2 --scheduler threads -o"


@dataclass(frozen=True)
class Operation:
    """A command, or a call, in a folder.

    Args:
        line: the command line, or a name of the call.
        call: the call.
        former: whether an earlier result of another model exists.
        partial: whether a partial result may remain, for ``--resume``.
    """

    line: str
    call: Callable[[], object] | None = None
    former: bool = False
    partial: bool = False

    def run(self) -> tuple[int, str]:
        """Run it; return the exit code and the output."""
        if self.call is None:
            found = CliRunner().invoke(main, self.line.split())
            if found.exception is not None and not isinstance(found.exception, SystemExit):
                raise found.exception
            return int(found.exit_code), found.stderr
        try:
            self.call()
        except ir.IRError as reason:
            return 5, str(reason)
        except (MemoryError, OSError) as reason:
            return 5, f"error: {reason}"
        return 0, ""

    def resumed(self) -> tuple[int, str]:
        """Run it again after a fault."""
        manifest = any(Path().glob("*.manifest.jsonl"))
        return Operation(f"{self.line} --resume").run() if self.partial and manifest else self.run()


def save() -> None:
    ir.save_model(ir.read_model("chain.xml"), "saved.xml")


def page() -> None:
    ir.read_model("chain.xml").report("page.html")


OPERATIONS = [
    Operation("run chain.xml -i x.npy -o out.npy"),
    Operation("run chain.xml -i x.npy -o out.npy", former=True),
    Operation("run chain.xml -i x.npy -o out.npz --layers shift"),
    Operation("run chain.xml -i x.npy -o out/ --layers shift"),
    Operation("run chain.xml -i x.npy -o out/ --layers shift", former=True),
    Operation("report chain.xml"),
    Operation("report chain.xml", former=True),
    Operation("graph chain.xml -o chain.dot"),
    Operation("save_model", save),
    Operation("save_model", save, former=True),
    Operation("Model.report", page),
    Operation(f"{BY_ROWS} out.npy", partial=True),
    Operation(f"{BY_ROWS} out.zarr", partial=True),
]
NAMES = [f"{each.line}{' over another' if each.former else ''}" for each in OPERATIONS]


@pytest.fixture(autouse=True)
def _folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A model and data; runs by rows compute in this thread, which is faster than a Dask scheduler."""
    from ir_runtime import opset13 as op

    write_chain(folder)
    np.save("x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    np.save("long.npy", np.arange(12, dtype=np.float32).reshape(6, 2))
    x = op.parameter([-1, 2], np.float32, name="x")
    ir.save_model(ir.Model([op.result(op.add(x, x))], [x], "rows"), "rows.xml")
    client = SimpleNamespace(nthreads=lambda: {"here": 1}, dashboard_link="", cluster=object())
    monkeypatch.setattr(cluster, "connect", lambda *_: nullcontext(client))
    monkeypatch.setattr(cluster, "dashboard_of", lambda client: "")
    monkeypatch.setattr(job, "_results", lambda client, job, chunks: ({n: job.compute(n)} for n in chunks))
    before = open_files()
    yield
    gc.collect()
    assert open_files() <= before, "files stay open"


def contents() -> Contents:
    """Return all files of the current folder."""
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def results(found: Contents) -> Contents:
    """Return the contents without what varies between runs."""
    return {name: data for name, data in found.items() if not name.endswith(".manifest.jsonl")}


class Faults:
    """An operation with faults injected one after the other."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.start = contents()
        if operation.former:
            self._change()
            assert operation.run()[0] == 0
            self._restore_model()
        self.before = contents()
        code, said = operation.run()
        assert code == 0, said
        self.after = results(contents())
        self.restore()

    def _change(self) -> None:
        """Give the model other weights and another name."""
        for name, data in contents().items():
            if name == "chain.bin":
                Path(name).write_bytes(data[:4] + data[:4] + data[8:])
            elif name == "chain.xml":
                Path(name).write_bytes(data.replace(b"scale", b"other"))

    def _restore_model(self) -> None:
        for name in ("chain.bin", "chain.xml"):
            Path(name).write_bytes(self.start[name])

    def restore(self) -> None:
        for path in Path().iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, data in self.before.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(data)

    def check(self, what: str, code: int, said: str) -> None:
        """Check the effects of a fault, and repeat the operation without it."""
        if code == 0:  # a fault that nobody needs to hear of
            assert results(contents()) == self.after, what
        else:
            # What a file claims to need may be more than there is: it is the file that is refused then.
            assert code == (2 if "not enough memory for the contents of" in said else 5), (what, said)
            assert said.count("error") == 1, (what, said)
            assert "bug" not in said, (what, said)
            assert "Traceback" not in said, (what, said)
            self._check_left(what)
        again, problem = self.operation.resumed()
        assert again == 0, (what, problem)
        assert results(contents()) == self.after, what
        self.restore()

    def _check_left(self, what: str) -> None:
        left = dict(contents())
        if self.operation.partial:
            partial = [name for name in left if ".part" in name.partition("/")[0] or ".manifest" in name]
            assert not partial or any(".manifest" in name for name in partial), what
            assert not any(Path(name).name.startswith(".") for name in left), what
            for name in partial:
                del left[name]
        assert left in (self.before, self.after), (what, set(left) ^ set(self.before))
        folders = {str(path) for path in Path().rglob("*") if path.is_dir() and ".part" not in str(path)}
        assert folders <= {str(Path(name).parent) for name in (*self.before, *self.after)}, what


def chosen(count: int, most: int | None) -> Iterator[int]:
    """Return at most ``most`` evenly spread fault numbers, counted from 1."""
    step = 1 if most is None else max(-(-count // most), 1)
    yield from sorted({*range(1, count + 1, step), count})


EACH = [
    pytest.param(each, most, id=name + ("" if most else ", all"), marks=() if most else pytest.mark.oracle)
    for most in (MOST, None)
    for each, name in zip(OPERATIONS, NAMES, strict=True)
]
"""Some of the faults of each operation, and exhaustively all."""


@pytest.mark.parametrize(("operation", "most"), EACH)
def test_each_call_of_the_file_system_may_fail(operation: Operation, most: int | None) -> None:
    faults = Faults(operation)
    with failing_call(0) as calls:
        operation.run()
    faults.restore()
    assert calls.count > 4, "an operation has several calls"
    for number in chosen(calls.count, most):
        with failing_call(number) as calls:
            code, said = operation.run()
        assert calls.failed
        faults.check(f"call {number}, {calls.failed}", code, said)


@contextmanager
def _file_size(limit: int) -> Iterator[None]:
    """Limit the size of files; Python ignores the signal, so writes fail."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)


@pytest.mark.parametrize(("operation", "most"), EACH)
def test_a_disk_may_be_full_at_each_byte(operation: Operation, most: int | None) -> None:
    """The system itself refuses the write; for long files, a sample of the positions is tried."""
    faults = Faults(operation)
    written = [data for name, data in faults.after.items() if faults.before.get(name) != data]
    for limit in chosen(max(map(len, written)), 200 if most is None else most):
        with _file_size(limit - 1):
            code, said = operation.run()
        assert code == 5, limit
        faults.check(f"{limit - 1} bytes", code, said)


@pytest.mark.parametrize(("operation", "most"), EACH)
def test_each_allocation_may_fail(operation: Operation, most: int | None) -> None:
    faults = Faults(operation)
    with failing(0) as memory:
        operation.run()
    faults.restore()
    for number in chosen(memory.count, most):
        with failing(number) as memory:
            code, said = operation.run()
        faults.check(f"allocation {number}", code, said)


def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks detect leftovers."""
    faults = Faults(OPERATIONS[0])
    Path(".out.npy.12345678.part").touch()
    with pytest.raises(AssertionError):
        faults.check("left", 5, "error: No space left on device")
    for said in ("error: a bug", "error: one\nerror: two", "", "error\nTraceback"):
        with pytest.raises(AssertionError):
            Faults(OPERATIONS[0]).check("said", 5, said)
