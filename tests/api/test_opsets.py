"""The factories of operations: they are called as OpenVINO's, and create the same operations."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset13 as ops

OPSETS = range(1, 18)


def factories(package: str, opset: int) -> dict[str, object]:
    module = import_module(f"{package}.opset{opset}")
    found = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return {name: factory for name, factory in found.items() if not isinstance(factory, ModuleType)}


def parameters(factory: object) -> list[tuple[str, object, object]] | None:
    """What a caller sees of the parameters of a function; classes of OpenVINO do not say."""
    if isinstance(factory, type):
        return None
    found = inspect.signature(factory).parameters.values()  # type: ignore[arg-type]
    return [(p.name, p.kind, p.default) for p in found]


@pytest.mark.parametrize("opset", OPSETS)
def test_signatures(opset: int) -> None:
    ours, theirs = factories("ir_runtime", opset), factories("openvino", opset)
    assert theirs.keys() <= ours.keys()
    if opset < 17:  # OpenVINO's last one lacks what former ones have
        assert ours.keys() == theirs.keys()
    for name, factory in theirs.items():
        expected = parameters(factory)
        if expected is not None:
            assert parameters(ours[name]) == expected, name


def test_every_function_is_described() -> None:
    for opset in OPSETS:
        for name, factory in factories("ir_runtime", opset).items():
            assert factory.__doc__, name


def test_imports() -> None:
    from ir_runtime import opset8
    from ir_runtime.opset8 import relu

    assert ir.opset8 is opset8
    assert opset8.relu is relu is ops.relu
    assert ops.add(ops.parameter([2], np.float32), np.float32([1, 2])).shape == [2]
