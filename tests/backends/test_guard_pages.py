"""Guard pages end a process that accesses memory outside an array or the scratch memory of a kernel."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.memory import Edge, Process
from harness.routines import load

from ir_runtime.backends.native.codegen.memory import load_f32, load_i64, scratch_memory, store_f32
from ir_runtime.backends.native.threading.parallel import parallel_for
from ir_runtime.backends.native.threading.task import UNUSED, Task

ALIVE, REFUSED = "", signal.SIGSEGV.name
# What looks at unused bytes ends the process with an instruction that does not exist.
NOTICED = (signal.SIGILL.name, signal.SIGTRAP.name)
COUNT = 5


def fate(action: Callable[[], object]) -> str:
    """Return the signal that kills a child process performing an action, or `ALIVE`."""
    child = os.fork()
    if not child:
        action()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return signal.Signals(-code).name if code < 0 else ALIVE


def read(array: Any, index: int) -> None:
    ctypes.c_float.from_address(array.ctypes.data + 4 * index).value  # noqa: B018


def write(index: int, make: Callable[..., Any]) -> None:
    """Return an array after writing one element, possibly outside it."""
    array = make(COUNT, np.float32)
    ctypes.c_float.from_address(array.ctypes.data + 4 * index).value = 1.0
    del array


def read_what_is_freed() -> None:
    array = np.empty(COUNT, np.float32)
    address = array.ctypes.data
    del array
    ctypes.c_float.from_address(address).value  # noqa: B018


@cache
def peek() -> Task:
    """Return a kernel that reads an element of its input, or of scratch memory of a given size."""

    def look(_call: int, job: int, out: int, x: int) -> None:
        scratch = scratch_memory(load_i64(job, 1))
        store_f32(out, 0, load_f32(scratch if load_i64(job, 1) > 0 else x, load_i64(job, 0)))

    task = Task(look, "peek")
    load(task)
    return task


def by_kernel(index: int, scratch: int = 0) -> None:
    job, x, out = np.array([index, scratch]), np.ones(COUNT, np.float32), np.empty(1, np.float32)
    parallel_for(peek().address, job, out, x, UNUSED, UNUSED, 1)


def in_a_thread(action: Callable[[], str]) -> str:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(action()))
    thread.start()
    thread.join()
    return found[0]


def fates(_: Path, tell: Callable[[str], None]) -> dict[str, str]:
    """Run each action in a process with guard pages; return the signals."""
    peek().prepare()
    fresh, zeros = np.empty(COUNT, np.float32), np.zeros(COUNT, np.float32)
    assert np.isnan(fresh).all()
    assert not zeros.any()
    grown = np.arange(COUNT)
    grown.resize(4096, refcheck=False)
    assert grown[:COUNT].tolist() == list(range(COUNT))
    acts: dict[str, Callable[[], object]] = {
        "read the first": lambda: read(fresh, 0),
        "read the last": lambda: read(fresh, COUNT - 1),
        "read before": lambda: read(fresh, -1),
        "read behind": lambda: read(fresh, COUNT),
        "read behind zeros": lambda: read(zeros, COUNT),
        "write the last": lambda: write(COUNT - 1, np.empty),
        "write before": lambda: write(-1, np.empty),
        "write behind": lambda: write(COUNT, np.empty),
        "write before zeros": lambda: write(-1, np.zeros),
        "write behind zeros": lambda: write(COUNT, np.zeros),
        "read what is freed": read_what_is_freed,
        "kernel reads the last": lambda: by_kernel(COUNT - 1),
        "kernel reads before": lambda: by_kernel(-1),
        "kernel reads behind": lambda: by_kernel(COUNT),
        "kernel reads the last of scratch": lambda: by_kernel(31, 128),
        "kernel reads behind scratch": lambda: by_kernel(32, 128),
        "kernel reads far before scratch": lambda: by_kernel(-40, 128),
    }
    found = {what: fate(act) for what, act in acts.items()}
    found["thread reads behind"] = in_a_thread(lambda: fate(lambda: read(np.empty(COUNT, np.float32), COUNT)))
    found["thread reads before"] = in_a_thread(lambda: fate(lambda: read(np.empty(COUNT, np.float32), -1)))
    return found


@pytest.mark.parametrize("edge", Edge, ids=lambda edge: edge.value)
def test_what_lies_beside_an_array_is_not_touched(edge: Edge, tmp_path: Path) -> None:
    with Process(fates, edge) as process:
        found, died = process.run(tmp_path)
    assert died == ""
    at_end = edge is Edge.END
    for what in ("read the first", "read the last", "write the last", "kernel reads the last"):
        assert found.pop(what) == ALIVE
    assert found.pop("kernel reads the last of scratch") == ALIVE
    assert found.pop("read what is freed") == REFUSED
    for what in ("write before", "write before zeros"):
        assert found.pop(what) in (NOTICED if at_end else (REFUSED,))
    for what in ("write behind", "write behind zeros"):
        assert found.pop(what) in ((REFUSED,) if at_end else NOTICED)
    for what, signal_ in found.items():
        assert signal_ == (REFUSED if ("behind" in what) is at_end else ALIVE), what
