"""Factories of operations have OpenVINO's signatures, and create the same operations."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Barrier
from types import ModuleType
from typing import get_type_hints

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset13 as ops
from ir_runtime.openvino.build import opsets
from ir_runtime.ops import registry

OPSETS = range(1, 18)


def factories(package: str, opset: int) -> dict[str, object]:
    module = import_module(f"{package}.opset{opset}")
    found = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return {name: factory for name, factory in found.items() if not isinstance(factory, ModuleType)}


def parameters(factory: object) -> list[tuple[str, object, object]] | None:
    """Return a function's parameters; OpenVINO's classes do not tell theirs."""
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


@pytest.mark.parametrize("opset", OPSETS)
def test_stubs_have_the_names_of_the_module(opset: int) -> None:
    """Each name is in ``__all__``, and defined in the stub or imported from the opset that added it."""
    module = import_module(f"ir_runtime.opset{opset}")
    tree = ast.parse(Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    listed: list[str] = []
    defined: dict[str, str | None] = {}
    for node in tree.body:
        match node:
            case ast.Assign(value=ast.List() as names) | ast.AugAssign(value=ast.List() as names):
                listed += ast.literal_eval(names)
            case ast.ImportFrom(module=source):
                defined |= {alias.asname or alias.name: source for alias in node.names}
            case ast.FunctionDef(name=name):
                defined[name] = f"opset{opset}"
    assert listed == module.__all__ == sorted(opsets.origins(opset))
    for name in listed:
        home = defined[name]
        assert home in (f"opset{opsets.origins(opset)[name]}", "openvino.build.factories"), name


def test_functions_are_as_if_they_were_written() -> None:
    assert (ops.relu.__module__, ops.relu.__qualname__) == ("ir_runtime.opset1.ops", "relu")
    assert ops.relu.__doc__.startswith("ReLU-1: ")
    assert get_type_hints(ops.relu)["return"] is ir.Node
    assert inspect.getsource(ops.relu).startswith(
        "def relu(node: NodeInput, name: str | None = None) -> Node:"
    )
    assert pickle.loads(pickle.dumps(ops.bitwise_not)) is copy.copy(ops.bitwise_not) is ops.bitwise_not


def test_wrong_arguments_are_said_of_the_function() -> None:
    with pytest.raises(TypeError, match=r"^relu\(\) missing 1 required positional argument: 'node'"):
        ops.relu()
    with pytest.raises(TypeError, match=r"^relu\(\) got an unexpected keyword argument 'nane'"):
        ops.relu([1.0], nane="x")


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'rellu'; did you mean 'relu'\?"):
        ops.rellu  # noqa: B018
    with pytest.raises(ImportError, match=r"cannot import 'rellu' from .*; did you mean 'relu'\?"):
        from ir_runtime.opset13 import rellu  # noqa: F401
    assert not hasattr(ir.opset7, "softsign")


@pytest.mark.parametrize("package", ["ir_runtime", "ir_runtime.runtime"])
def test_what_an_opset_adds_is_in_a_module_of_its_own(package: str) -> None:
    code = f"import {package}.opset13.ops as ops, ir_runtime; assert ops.bitwise_not is ir_runtime.opset13.bitwise_not"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_all_public_names_and_no_others_are_imported() -> None:
    names: dict[str, object] = {}
    exec("from ir_runtime.opset8 import *", names)
    assert set(names) - {"__builtins__"} == set(ir.opset8.__all__) == set(dir(ir.opset8))


def test_functions_are_made_when_they_are_asked_for() -> None:
    code = """
import sys, ir_runtime.opset13 as ops
assert "numpy" not in sys.modules
ops.relu
assert "relu" in vars(ops) and "tanh" not in vars(ops)
assert "ir_runtime.ops.detection.proposals" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_threads_are_given_the_same_function(monkeypatch: pytest.MonkeyPatch) -> None:
    barrier = Barrier(8)
    create = opsets._create

    def late(opset: int, name: str) -> object:
        function = create(opset, name)
        barrier.wait(600)
        return function

    monkeypatch.setattr(opsets, "_create", late)
    monkeypatch.delitem(vars(ir.opset9), "softsign", raising=False)
    with ThreadPoolExecutor(8) as pool:
        found = {id(each) for each in pool.map(lambda _: ir.opset9.softsign, range(8))}
    assert found == {id(ir.opset9.softsign)}


@pytest.mark.parametrize("opset", OPSETS)
def test_the_table_lists_only_what_operations_do_not_declare(opset: int) -> None:
    for name, row in opsets._rows(opset).items():
        cls = opsets._factory(opset, name).cls
        if cls is not None:
            assert row.parameters != ", ".join(opsets._declared_parameters(cls)), (
                f"{name} needs no parameters"
            )
            assert not row.target or registry.name(name.replace("_", "")) is None, (
                f"{name} needs no operation"
            )
