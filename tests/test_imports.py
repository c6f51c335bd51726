"""The import contract: packages depend only on packages below them, and there are no import cycles.

Imports inside functions and for type checkers count, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest
from harness.sources import trees

import ir_runtime

NAME = ir_runtime.__name__
ROOT = Path(ir_runtime.__file__).parent

OPSETS = tuple(f"opset{number}" for number in range(1, 18))
LAYERS = (
    "ir", "ops", "analysis", "io", "backends", "executor", "compiler", "releases", "report", "properties", "openvino", *OPSETS, "op", "passes", "frontend", "helpers", "tools", "utils", "_offline_transformations", "runtime", "preprocess", "_pyopenvino", "bench", "debug", "conformance", "dask", "cli", "testing",
)  # fmt: skip
"""The packages, from the bottom to the top. What stands beside them is at the bottom, but for the public names."""
LEAVES = ("explanations", "guides", "_util")
"""Packages that need no other: pages, names, and helpers."""
TOP = (NAME, f"{NAME}.__main__")
"""Modules that may import any package."""


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    return {_module(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(module: str) -> Iterator[str]:
    """Return the modules of this package that a module imports anywhere."""
    path = modules()[module]
    for node in ast.walk(trees()[path]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, path.name == "__init__.py", node)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                if (found := inner if inner in modules() else base) in modules():
                    yield found


def _base(module: str, is_package: bool, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


@cache
def graph() -> nx.DiGraph[str]:
    return nx.DiGraph(
        (module, other) for module in modules() for other in imported(module) if module != other
    )


def package(module: str) -> str:
    """Return the package of a module; empty for top-level modules."""
    name = module.removeprefix(NAME).lstrip(".").partition(".")[0]
    return name if name in LAYERS or name in LEAVES else ""


def test_every_package_has_its_place() -> None:
    packages = {path.name for path in ROOT.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert packages <= {*LAYERS, *LEAVES}


def test_packages_depend_on_those_below() -> None:
    heights = {"": 0, **dict.fromkeys(LEAVES, 0), **{name: height for height, name in enumerate(LAYERS, 1)}}
    upward = [
        f"{module} imports {other}"
        for module, other in graph().edges
        if module not in TOP and heights[package(other)] > heights[package(module)]
    ]
    assert upward == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    circles = [sorted(found) for found in nx.strongly_connected_components(graph()) if len(found) > 1]
    assert circles == []


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_backends_do_not_know_each_other(backend: str) -> None:
    others = {"numpy", "native"} - {backend}
    found = [
        f"{module} imports {other}"
        for module, other in graph().edges
        if module.startswith(f"{NAME}.backends.{backend}")
        and other.split(".")[2:3]
        and other.split(".")[2] in others
    ]
    assert found == []


def test_modules_with_an_underscore_are_used_inside_their_package_only() -> None:
    found = [
        f"{module} imports {other}"
        for module, other in graph().edges
        if other.rpartition(".")[2].startswith("_")
        and not f"{module}.".startswith(f"{other.rpartition('.')[0]}.")
    ]
    assert found == []


def test_imports_of_every_kind_are_seen() -> None:
    """A lazy import, one for type checkers, one of a module from its package, and an absolute one."""
    edges = graph().edges
    assert (f"{NAME}.cli.inspect", f"{NAME}.openvino.model") in edges
    assert (f"{NAME}.openvino.model", f"{NAME}.analysis.constraints.constraint") in edges
    assert (f"{NAME}.backends.native", f"{NAME}.backends.native._backend") in edges
    assert len(edges) > 1000
