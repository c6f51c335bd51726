"""Reading and compiling models runs no garbage collection, as their objects stay alive, and imports little."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.session import nothing_frozen

import ir_runtime as ir

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.xml"


@contextmanager
def collections() -> Iterator[list[dict[str, int]]]:
    """Collect after every tenth object, and list the collections."""
    found: list[dict[str, int]] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(info)

    before, was_enabled = gc.get_threshold(), gc.isenabled()
    gc.enable()
    gc.set_threshold(10)
    gc.callbacks.append(note)
    try:
        yield found
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
        if not was_enabled:
            gc.disable()


@pytest.mark.parametrize(
    "load",
    [lambda: ir.read_model(DIGITS), lambda: ir.compile_model(ir.read_model(DIGITS))],
    ids=["read", "compile"],
)
def test_no_garbage_is_collected(load: Callable[[], object]) -> None:
    load()  # imports are not what is tested
    with collections() as found:
        load()
    assert len(found) < 20
    assert gc.isenabled()


def test_objects_of_models_are_not_visited_afterwards() -> None:
    """They are in the oldest generation when collection is enabled again, so new objects do not trigger visits of all of them."""
    with nothing_frozen():
        ir.compile_model(ir.read_model(DIGITS))
        gc.collect()
        with collections() as found:
            model = ir.compile_model(ir.read_model(DIGITS))
            assert len(gc.get_objects(generation=0)) < 1000
            cycle: list[object] = []
            cycle.append(cycle)
        assert all(info["generation"] < 2 for info in found)
        assert gc.get_freeze_count() == 0
        assert model is not None


def test_objects_that_a_program_has_frozen_stay_so() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    ir.compile_model(ir.read_model(DIGITS))
    assert 0 < frozen // 2 < gc.get_freeze_count() <= frozen


def test_the_collector_of_a_program_stays_as_it_is() -> None:
    gc.disable()
    try:
        ir.compile_model(ir.read_model(DIGITS))
        assert not gc.isenabled()
    finally:
        gc.enable()


IMPORTED = f"""
import sys
import ir_runtime as ov
core = ov.Core()
before = set(sys.modules)
core.compile_model(core.read_model({str(DIGITS)!r}), "CPU", {{"INFERENCE_NUM_THREADS": 1}})
print(*(name for name in sys.modules if name not in before and name.startswith("ir_runtime")))
"""


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_core_has_imported_what_most_models_need(backend: str) -> None:
    environment = {**os.environ, "IR_RUNTIME_BACKEND": backend}
    command = [sys.executable, "-c", IMPORTED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    build = "ir_runtime.backends.native.build"  # compiles kernels that no process has compiled before
    assert all(name.startswith(build) for name in done.stdout.split())
