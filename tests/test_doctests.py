"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pkgutil import walk_packages

import pytest

import ir_runtime

MODULES = [m.name for m in walk_packages(ir_runtime.__path__, "ir_runtime.") if "__main__" not in m.name]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0
