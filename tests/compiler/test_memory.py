"""Peak memory: the live tensors while a step runs, including those of its layer's body."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ir_runtime.compiler.memory import peak


def _steps() -> list[Any]:
    """Two steps: the first writes slot 0, the second slot 1, after which slot 0 is freed."""
    first = SimpleNamespace(layer=SimpleNamespace(id=7), writes=(0,), frees=())
    second = SimpleNamespace(layer=SimpleNamespace(id=8), writes=(1,), frees=(0,))
    return [first, second]


def test_a_slot_counts_until_it_is_free() -> None:
    steps = _steps()
    found = peak(steps, 10, [4, 2])
    assert (found.bytes, found.step) == (16, steps[1])
    third = SimpleNamespace(layer=SimpleNamespace(id=9), writes=(2,), frees=(1,))
    assert peak([*steps, third], 10, [4, 2, 3]).bytes == 16


def test_bodies_count_while_their_layer_runs() -> None:
    steps = _steps()
    found = peak(steps, 10, [4, 2], {7: 100})
    assert (found.bytes, found.step) == (114, steps[0])
    assert peak(steps, 10, [4, 2], {8: 1}).bytes == 17
