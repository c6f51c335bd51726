"""Every public name has an example that runs: test_doctests.py runs them, here each must have one."""

from __future__ import annotations

import inspect
import types
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
