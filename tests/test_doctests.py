"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

import pytest

import ir_runtime
from ir_runtime.ops import registry

MODULES = [m.name for m in walk_packages(ir_runtime.__path__, "ir_runtime.") if "__main__" not in m.name]


@pytest.fixture
def restored_registry() -> Iterator[None]:
    """Remove the operations that an example registers, which other tests of the process would find."""
    before = set(registry)
    yield
    for operation in set(registry) - before:
        registry.remove(operation)


@pytest.mark.usefixtures("restored_registry")
@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0
