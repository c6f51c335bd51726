"""Every public name has an example that runs: test_doctests.py runs them, here each must have one."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
import types
from collections.abc import Callable, Iterator
from importlib import import_module

import pytest
from docs.reference import MODULES as DOCUMENTED

from ir_runtime import errors
from ir_runtime.openvino.names import find_port


def public_modules(name: str = "ir_runtime") -> Iterator[str]:
    """A module, and those among its public names; the opsets have pages of operations instead."""
    module = import_module(name)
    yield name
    for each in getattr(module, "__all__", ()):
        found = getattr(module, each)
        inner = isinstance(found, types.ModuleType) and found.__name__.startswith("ir_runtime.")
        if inner and not re.fullmatch(r"opset\d+", each):
            yield from public_modules(found.__name__)


MODULES = tuple(
    dict.fromkeys(
        [
            *public_modules(),
            *(f"ir_runtime.{name}".removesuffix(".ir_runtime") for name in DOCUMENTED if name != "ops"),
        ]
    )
)
"""What users import: the names below ``ir_runtime``, and the modules that the documentation has pages for.

An operation stays registered, so ``ops`` is shown by examples/custom_op and the guide, which tests run."""

# What the package itself calls: in the child after a fork.
INTERNAL = {"after_fork"}


def named(module: str) -> list[str]:
    """The public names of a module that are not modules themselves."""
    found = import_module(module)
    names = [name for name in getattr(found, "__all__", ()) if not name.startswith("_")]
    return [name for name in names if not isinstance(getattr(found, name), types.ModuleType)]


def example(thing: object) -> str:
    """The code of the examples in a docstring."""
    lines = (line.strip() for line in (inspect.getdoc(thing) or "").splitlines())
    return "\n".join(line for line in lines if line.startswith((">>> ", "... ")))


def own_classes(cls: type) -> list[type]:
    """A class and those of this package that it derives from."""
    return [base for base in cls.__mro__ if base.__module__.startswith("ir_runtime")]


def own_members(cls: type) -> Iterator[tuple[str, object]]:
    """The public methods and properties of a class that this package defines."""
    for base in own_classes(cls):
        for name, member in vars(base).items():
            is_method = inspect.isfunction(getattr(member, "__func__", member)) or isinstance(
                member, property
            )
            if is_method and name[0] != "_" and name not in INTERNAL:
                yield name, member


def has_example(module: types.ModuleType, name: str) -> bool:
    """Whether a function or a class has an example, or that of its module uses it.

    A class that adds nothing to another one is shown by that of the other one.
    """
    thing = getattr(module, name)
    if not inspect.isclass(thing) and not inspect.isfunction(thing):
        return True
    if ">>> " in (inspect.getdoc(thing) or "") or re.search(rf"\b{name}\b", example(module)):
        return True
    return (
        inspect.isclass(thing)
        and not any(key[0] != "_" for key in vars(thing))
        and any(map(example, own_classes(thing)))
    )


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_an_example(module: str) -> None:
    found = import_module(module)
    assert [name for name in named(module) if not has_example(found, name)] == []


def test_names_without_an_example_are_found() -> None:
    module = types.ModuleType("ir_runtime.new")
    vars(module)["function"] = lambda: None
    assert not has_example(module, "function")


def test_public_names_are_found() -> None:
    assert "compile_model" in named("ir_runtime")
    assert "opset1" not in named("ir_runtime")


def functions(module: str) -> Iterator[tuple[str, Callable[..., object]]]:
    """The public functions of a module, and the methods of its classes that this package defines."""
    for name in named(module):
        found = getattr(import_module(module), name)
        if not inspect.isclass(found):
            yield from [(name, found)] if inspect.isfunction(found) else []
            continue
        for member in (each for each in dir(found) if not each.startswith("_")):
            method = inspect.getattr_static(found, member)
            method = getattr(method, "__func__", method)
            if inspect.isfunction(method) and method.__module__.startswith("ir_runtime"):
                yield f"{name}.{member}", method


def says_what_it_takes(function: Callable[..., object]) -> bool:
    """Whether the docstring of a function of several parameters names them, or says so in words alike."""
    names = [
        name
        for name in inspect.signature(function).parameters
        if name not in ("self", "cls") and name[0] != "_"
    ]
    text = (inspect.getdoc(function) or "").lower().replace("_", " ")
    return (
        len(names) < 2
        or "args:" in text
        or any(name.lower().replace("_", " ").rstrip("s") in text for name in names)
    )


@pytest.mark.parametrize("module", MODULES)
def test_every_public_function_says_what_it_takes(module: str) -> None:
    found = dict(functions(module))
    assert [name for name, function in found.items() if not says_what_it_takes(function)] == []


def test_methods_are_found() -> None:
    assert "Model.reshape" in dict(functions("ir_runtime"))
    assert not says_what_it_takes(lambda first, second: None)


@functools.cache
def raised(function: Callable[..., object], depth: int = 2) -> frozenset[str]:
    """The errors of this package that a function raises, itself or in functions that it calls by name."""
    names: set[str] = set()
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    tried = [
        each for node in ast.walk(tree) if isinstance(node, ast.Try) and node.handlers for each in node.body
    ]
    caught = {node for each in tried for node in ast.walk(each)}
    for node in (node for node in ast.walk(tree) if node not in caught):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            names.add(ast.unparse(node.exc.func))
        if depth and isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = function.__globals__.get(node.func.id)
            if inspect.isfunction(called) and called.__module__.startswith("ir_runtime"):
                names |= raised(called, depth - 1)
    return frozenset(name for name in names if issubclass(vars(errors).get(name, int), errors.IRError))


def says_what_it_raises(function: Callable[..., object]) -> bool:
    """Whether the docstring says which errors there may be, or which function has the same."""
    text = inspect.getdoc(function) or ""
    return "Raises:" in text or "`ir_runtime." in text or not raised(inspect.unwrap(function))


@pytest.mark.parametrize("module", MODULES)
def test_every_public_function_says_what_it_raises(module: str) -> None:
    found = dict(functions(module))
    assert [name for name, function in found.items() if not says_what_it_raises(function)] == []


def test_errors_of_helpers_are_found() -> None:
    assert "InputError" in raised(find_port)
    assert not says_what_it_raises(lambda ports: find_port(ports, 0, "input"))
    assert says_what_it_raises(find_port)
