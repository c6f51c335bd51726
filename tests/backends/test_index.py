"""Modules of kernels, operations and commands are imported on demand, by generated lists that are up to date."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from harness.index import FAST, indexes, written

from ir_runtime import backends


def package(name: str) -> Any:
    return import_module(f"{backends.__name__}.{name}")


def test_the_lists_are_up_to_date() -> None:
    found = list(indexes())
    assert len(found) == 2 + len(FAST) + len(list(written()))
    for file, text in found:
        assert file.read_text(encoding="utf-8") == text, "make index writes it anew"


@pytest.mark.parametrize("name", FAST)
def test_kernels_of_compressed_weights_are_imported_for_those_who_read_them(name: str) -> None:
    code = f"""
import sys
from ir_runtime.backends.{name} import backend
from ir_runtime.ops import registry
matmul = registry.resolve("MatMul")
assert "MatMul" in backend.packed_readers
assert "{package(name).__name__}.kernels.quantized_matmul" not in sys.modules
backend._import(matmul, backend.packed_modules)
assert matmul in backend.packed
"""
    subprocess.run([sys.executable, "-c", code], check=True)


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


@pytest.mark.parametrize("name", FAST)
def test_a_backend_imports_no_other_backend(name: str) -> None:
    """Backends share code only through `backends.common`."""
    root = Path(package(name).__file__).parent
    others = {f"{backends.__name__}.{other}" for other in FAST if other != name}
    for file in root.rglob("*.py"):
        module = ".".join((package(name).__name__, *file.relative_to(root).with_suffix("").parts))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                base = module.split(".")[: -node.level] if node.level else []
                source = ".".join([*base, node.module or ""])
                assert not any(f"{source}.".startswith(f"{other}.") for other in others), file
