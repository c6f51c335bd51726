"""Every public name has an example that runs: test_doctests.py runs them, here each must have one."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from importlib import import_module

import pytest

MODULES = tuple(
    f"ir_runtime{name}"
    for name in (
        "",
        ".debug",
        ".exceptions",
        ".guides",
        ".helpers",
        ".preprocess",
        ".properties",
        ".properties.device",
        ".properties.hint",
        ".properties.intel_cpu",
        ".properties.log",
        ".properties.streams",
        ".report",
        ".utils.decorators",
    )
)


def named(module: str) -> list[str]:
    """The public names of a module that are not modules themselves."""
    found = import_module(module)
    names = [name for name in found.__all__ if not name.startswith("_")]
    return [name for name in names if not isinstance(getattr(found, name), types.ModuleType)]


@pytest.mark.parametrize("name", ["frontend", "op", "op.util", "passes", "utils"])
def test_names_of_openvino_have_an_example_of_their_module(name: str) -> None:
    assert ">>> " in (inspect.getdoc(import_module(f"ir_runtime.{name}")) or "")


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_an_example(module: str) -> None:
    found = import_module(module)
    assert [
        name for name in named(module) if ">>> " not in (inspect.getdoc(getattr(found, name)) or "")
    ] == []


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
