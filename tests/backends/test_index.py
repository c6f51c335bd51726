"""Kernels are imported when a model needs them, by lists that are up to date."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest
from harness.index import FAST, indexes

from ir_runtime import backends


def package(name: str) -> Any:
    return import_module(f"{backends.__name__}.{name}")


def test_the_lists_are_up_to_date() -> None:
    found = list(indexes())
    assert len(found) == 1 + len(FAST)
    for file, text in found:
        assert file.read_text(encoding="utf-8") == text, "make index writes it anew"


@pytest.mark.parametrize("name", FAST)
def test_what_multiplies_compressed_weights_is_there_from_the_beginning(name: str) -> None:
    """They are asked for before any operation is."""
    count = f"from ir_runtime.backends.{name} import backend; print(sum(map(len, backend.packed.values())))"
    found = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True)
    list(indexes())
    assert int(found.stdout) == sum(map(len, package(name).backend.packed.values()))


@pytest.mark.parametrize("name", FAST)
def test_only_what_is_needed_is_imported(name: str) -> None:
    code = f"""
import sys
from ir_runtime.backends.{name} import backend
from ir_runtime.ops import registry
backend._import(registry.resolve("MatMul"), backend.kernel_modules)
assert registry.resolve("MatMul") in backend.offers
assert "{package(name).__name__}.kernels.convolution" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
